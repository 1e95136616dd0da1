#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "hkt/base/config.h"
#include "hkt/data/task.h"
#include "hkt/data/tensors.h"

namespace hkt::train {

struct DryRunOptions {
  int64_t warmup_steps = 2;
  int64_t steps = 7;        // timed
  double max_seconds = 60;  // fewer steps when they take longer, but one
};

struct DryRunReport {
  int64_t parameters = 0, vocabulary = 0, seq_len = 0, classes = 0, threads = 0;
  int64_t tokens_per_step = 0;
  int64_t peak_memory_bytes = 0;     // of the whole process, the libraries included
  std::vector<double> step_seconds;  // every timed step
  double median_step_seconds = 0;
  double tokens_per_second = 0;  // at the median
};

// The micro-batches of one step, random, every sequence of the full length.
std::vector<data::TensorBatch> RandomBatches(const TrainConfig& config, const data::TaskInfo& task);

// Real training steps (TrainStep: forward, backward, clipping, AdamW, dropout) on random batches in
// which every sequence has the full length: the largest memory and the longest step that the
// configuration can meet. Needs no data, but for the classes of task text, and writes nothing.
DryRunReport DryRun(const Config& resolved, const DryRunOptions& options = {});

nlohmann::ordered_json ToJson(const DryRunReport& report);

}  // namespace hkt::train
