#pragma once

#include <cstdint>

#include "hkt/base/config.h"

namespace hkt::train {

// Steps of the linear warm-up: a share of all steps below 1, a number of steps from 1 on.
int64_t WarmupSteps(const TrainConfig& config);

// Learning rate of step 0 … steps - 1, a pure function. With W warm-up steps and N steps in all, at
// step i:
//   i < W      lr (i + 1) / (W + 1)
//   constant   lr
//   linear     lr (1 - p)                 p = (i - W) / (N - W)
//   cosine     lr (1 + cos(pi p)) / 2
//   rsqrt      lr sqrt((W + 1) / (i + 1))
// Above 0 at every step, the first and the last one included: a rate of 0 is a step thrown away.
double LearningRate(const TrainConfig& config, int64_t step);

}  // namespace hkt::train
