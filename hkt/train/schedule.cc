#include "hkt/train/schedule.h"

#include <cmath>
#include <numbers>

#include "hkt/base/error.h"

namespace hkt::train {

int64_t WarmupSteps(const TrainConfig& config) {
  const double steps =
      config.warmup < 1 ? config.warmup * static_cast<double>(config.steps) : config.warmup;
  // A warm-up longer than the run is allowed: the run then never reaches the peak.
  return static_cast<int64_t>(std::llround(std::min(steps, 1e15)));
}

double LearningRate(const TrainConfig& config, int64_t step) {
  const auto warmup = static_cast<double>(WarmupSteps(config));
  const auto i = static_cast<double>(step);
  if (i < warmup) return config.lr * (i + 1) / (warmup + 1);
  if (config.schedule == "constant") return config.lr;
  if (config.schedule == "rsqrt") return config.lr * std::sqrt((warmup + 1) / (i + 1));
  const double p = (i - warmup) / (static_cast<double>(config.steps) - warmup);
  if (config.schedule == "linear") return config.lr * (1 - p);
  CheckUsage(config.schedule == "cosine", "schedule is '", config.schedule,
             "', must be cosine, linear, rsqrt or constant");
  return config.lr * 0.5 * (1 + std::cos(std::numbers::pi * p));
}

}  // namespace hkt::train
