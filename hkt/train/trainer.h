#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "hkt/data/task.h"
#include "hkt/io/run_folder.h"
#include "hkt/train/average.h"
#include "hkt/train/checkpoint.h"
#include "hkt/train/metrics_log.h"
#include "hkt/train/observer.h"
#include "hkt/train/step.h"

namespace hkt::train {

// Trains one model in one run folder. Two promises: the state that is saved after step n continues,
// bit for bit, as if nothing had happened; and no failure (disk full, a step that is not finite, an
// evaluation that throws, a kill) replaces a good file by a bad one.
class Trainer {
 public:
  // `config` is resolved, the folder exists. Data and observer must outlive the trainer. Seeds
  // PyTorch's CPU generator, which belongs to the trainer until it is done.
  Trainer(io::RunFolder folder, const Config& config, const data::TaskInfo& task,
          const data::Dataset& train, const data::Dataset& validation,
          TrainObserver* observer = nullptr);

  // From here on this one is told; before, and without any, warnings go to WarnOnce.
  void Watch(TrainObserver* observer) { observer_ = observer; }

  // Goes on from state.safetensors; without one (the run was killed before its first save) from the
  // start. With `from_step` from the state after that step, which --keep-states kept; it becomes
  // the run's state, and what came after it is removed. Then drops the lines of metrics.jsonl that
  // are to be written again.
  void Resume(std::optional<int64_t> from_step = std::nullopt);

  // Trains to the end, or until told to stop; saves in all cases. Throws Error when 20 steps in a
  // row were not finite or the final save fails; what was saved before stays.
  TrainEnd Run(const ShouldStop& should_stop = {});

  // All steps are done and evaluated, or patience is used up.
  bool finished() const;
  const Progress& progress() const { return progress_; }
  const Model& model() const { return model_; }

 private:
  using Clock = std::chrono::steady_clock;

  RunTensors tensors() const;
  void GoBackTo(int64_t step);
  bool PatienceUsedUp() const;
  void LogStep(const StepReport& report);
  void KeepOldState();
  void DropOldStates() const;

  // False: stopped inside the step, which then never was.
  bool DoStep(data::TrainLoader& loader, const ShouldStop& should_stop);
  bool EvaluationDue() const;
  bool DoEvaluation(const ShouldStop& should_stop);
  void Evaluated(const ValidationPoint& point, double seconds);
  // Saves unless the state is bad; says whether it did. A failure to write is an Error.
  bool Save(bool leaving, bool is_last = false);
  void SaveOrWarn();
  void WriteMetrics(const nlohmann::ordered_json& line);
  void Warn(const std::string& message);
  double Elapsed() const;
  double CpuElapsed() const;

  io::RunFolder folder_;
  Config config_;
  std::vector<std::string> classes_;
  const data::Dataset& train_;
  const data::Dataset& validation_;
  TrainObserver* observer_;
  std::string fingerprint_;
  Model model_;
  TrainStep step_;
  std::optional<WeightAverage> average_;  // with --ema
  MetricsLog log_;
  Progress progress_;
  at::Tensor random_;  // the generator's state before the next step
  bool save_due_ = false;
  std::optional<int64_t> saved_step_;  // of state.safetensors
  double elapsed_before_ = 0;          // in earlier sessions
  Clock::time_point start_ = Clock::now();
  double cpu_before_ = 0, cpu_start_ = 0;  // the same of processor time
  bool end_written_ = false;               // metrics.jsonl has its line of kind "end"
};

}  // namespace hkt::train
