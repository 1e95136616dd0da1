#include "hkt/train/dry_run.h"

#include <algorithm>
#include <chrono>

#include "hkt/base/random.h"
#include "hkt/data/loader.h"
#include "hkt/data/task.h"
#include "hkt/train/checkpoint.h"
#include "hkt/train/step.h"
#include "hkt/train/system.h"

namespace hkt::train {
namespace {

data::Batch RandomBatch(int64_t B, const data::TaskInfo& task, uint64_t key) {
  Random random({0, key});
  data::Batch batch;
  batch.B = B;
  batch.T = task.seq_len;
  batch.channels = task.channels;
  for (int64_t i = 0; i < batch.B * batch.T * batch.channels; ++i)
    batch.ids.push_back(random.Between(task.channels > 1 ? 0 : 1, task.vocabulary - 1));
  batch.lengths.assign(static_cast<size_t>(B), batch.T);
  for (int64_t i = 0; i < B; ++i) {
    batch.labels.push_back(random.Between(0, static_cast<int64_t>(task.classes.size()) - 1));
    batch.indices.push_back(i);
  }
  return batch;
}

}  // namespace

std::vector<data::TensorBatch> RandomBatches(const TrainConfig& config,
                                             const data::TaskInfo& task) {
  std::vector<data::TensorBatch> batches;
  for (int64_t i = 0; i < config.accumulate; ++i)
    batches.push_back(data::ToTensors(RandomBatch(config.batch, task, static_cast<uint64_t>(i))));
  return batches;
}

DryRunReport DryRun(const Config& config, const DryRunOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const data::TaskInfo task = data::DescribeWithClasses(config.data);
  Model model = Model(config, task);
  model.SetTraining(true);
  TrainStep step(model, config.train);
  const std::vector<data::TensorBatch> batches = RandomBatches(config.train, task);
  DryRunReport report;
  const auto begin = Clock::now();
  for (int64_t i = 0; i < options.warmup_steps + options.steps; ++i) {
    const auto start = Clock::now();
    const StepOutcome outcome = step.Run(batches, std::min(i, config.train.steps - 1));
    const bool timed = i >= options.warmup_steps || seconds_since(begin) > options.max_seconds;
    if (timed) report.step_seconds.push_back(seconds_since(start));
    report.tokens_per_step = outcome.tokens;
    if (timed && seconds_since(begin) > options.max_seconds) break;
  }
  report.parameters = model.parameter_count();
  report.vocabulary = task.vocabulary;
  report.seq_len = task.seq_len;
  report.classes = static_cast<int64_t>(task.classes.size());
  report.threads = Threads();
  report.peak_memory_bytes = PeakMemory();
  std::vector<double> sorted = report.step_seconds;
  std::sort(sorted.begin(), sorted.end());
  report.median_step_seconds = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
  report.tokens_per_second =
      static_cast<double>(report.tokens_per_step) / report.median_step_seconds;
  return report;
}

nlohmann::ordered_json ToJson(const DryRunReport& report) {
  return {{"parameters", report.parameters},
          {"vocabulary", report.vocabulary},
          {"seq_len", report.seq_len},
          {"classes", report.classes},
          {"threads", report.threads},
          {"tokens_per_step", report.tokens_per_step},
          {"peak_memory_bytes", report.peak_memory_bytes},
          {"median_step_seconds", report.median_step_seconds},
          {"tokens_per_second", report.tokens_per_second},
          {"step_seconds", report.step_seconds}};
}

}  // namespace hkt::train
