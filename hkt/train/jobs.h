#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "hkt/base/config.h"
#include "hkt/data/task.h"
#include "hkt/io/run_folder.h"
#include "hkt/train/observer.h"
#include "hkt/train/run.h"

// The jobs of `hkt train` and `hkt eval` from end to end; no torch in this header.

namespace hkt::train {

// What is known before the first step.
struct TrainStart {
  io::RunFolder folder;
  Config config;  // resolved
  data::TaskInfo task;
  int64_t parameters = 0;
  int64_t train_samples = 0, validation_samples = 0, truncated = 0;
  Progress progress;  // of the step to go on from
  bool resumed = false, finished = false;
};

struct TrainSummary {
  TrainStart start;
  TrainEnd end = TrainEnd::kFinished;
  Progress progress{};
  double majority_share = 0;  // of the validation split
  int64_t peak_memory_bytes = 0;
  nlohmann::ordered_json fusion{};  // DescribeFusion of the best weights
};

// Opens or resumes the run folder, loads the data (train and validation, never test), and trains.
// `begin` is called once before the first step and returns who watches.
TrainSummary TrainRun(const RunRequest& request,
                      const std::function<std::unique_ptr<TrainObserver>(const TrainStart&)>& begin,
                      const ShouldStop& should_stop = {});

// What to type next: evaluate what ended, resume what was left.
std::string NextCommand(const TrainSummary& summary);

nlohmann::ordered_json ToJson(const TrainSummary& summary);

struct EvaluateRequest {
  std::string run;
  std::string split = "test";
  std::string data;              // empty: as the run was trained
  std::optional<int64_t> batch;  // likewise
  int64_t threads = 0;
};

// Evaluates the best weights of a run on one split and returns what eval.json is to hold:
// version, run, split, what the weights are, ClassificationReport, loss, and the predicted classes
// in the split's order.
nlohmann::ordered_json EvaluateRun(const EvaluateRequest& request);
void WriteEvaluation(const std::string& run, const nlohmann::ordered_json& report);

}  // namespace hkt::train
