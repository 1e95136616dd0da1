#include "hkt/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hkt/base/error.h"

namespace hkt::train {
namespace {

TrainConfig Make(const std::string& schedule, int64_t steps, double warmup) {
  TrainConfig config;
  config.schedule = schedule;
  config.steps = steps;
  config.warmup = warmup;
  config.lr = 2;
  return config;
}

TEST(ScheduleTest, WarmupIsAShareBelowOneAndStepsFromOneOn) {
  EXPECT_EQ(WarmupSteps(Make("cosine", 1000, 0)), 0);
  EXPECT_EQ(WarmupSteps(Make("cosine", 1000, 0.05)), 50);
  EXPECT_EQ(WarmupSteps(Make("cosine", 1000, 0.999)), 999);
  EXPECT_EQ(WarmupSteps(Make("cosine", 1000, 1)), 1);
  EXPECT_EQ(WarmupSteps(Make("cosine", 1000, 8000)), 8000);
  EXPECT_GT(WarmupSteps(Make("cosine", 1000, 1e300)), 1000);
}

TEST(ScheduleTest, Values) {
  // 4 steps of warm-up to a peak of 2, then 16 steps.
  for (const char* schedule : {"cosine", "linear", "rsqrt", "constant"}) {
    const TrainConfig config = Make(schedule, 20, 4);
    EXPECT_DOUBLE_EQ(LearningRate(config, 0), 0.4) << schedule;
    EXPECT_DOUBLE_EQ(LearningRate(config, 3), 1.6) << schedule;
    EXPECT_DOUBLE_EQ(LearningRate(config, 4), 2.0) << schedule;
  }
  EXPECT_DOUBLE_EQ(LearningRate(Make("linear", 20, 4), 12), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(Make("linear", 20, 4), 19), 2.0 / 16);
  EXPECT_DOUBLE_EQ(LearningRate(Make("cosine", 20, 4), 12), 1.0);
  EXPECT_DOUBLE_EQ(LearningRate(Make("cosine", 20, 4), 8), 1 + std::sqrt(0.5));
  EXPECT_DOUBLE_EQ(LearningRate(Make("rsqrt", 100, 4), 19), 1.0);  // sqrt(5 / 20)
  EXPECT_DOUBLE_EQ(LearningRate(Make("constant", 20, 4), 19), 2.0);
}

TEST(ScheduleTest, NeverZeroAndNeverAboveThePeak) {
  for (const char* schedule : {"cosine", "linear", "rsqrt", "constant"}) {
    for (int64_t steps : {1, 2, 3, 10, 1000}) {
      for (double warmup : {0.0, 0.05, 0.5, 0.999, 1.0, 2.0, 1000.0, 5000.0}) {
        const TrainConfig config = Make(schedule, steps, warmup);
        for (int64_t step = 0; step < steps; ++step) {
          const double rate = LearningRate(config, step);
          EXPECT_TRUE(rate > 0 && rate <= 2)
              << schedule << " " << steps << " " << warmup << " " << step << ": " << rate;
        }
      }
    }
  }
  EXPECT_THROW(LearningRate(Make("other", 10, 0), 5), UsageError);
}

}  // namespace
}  // namespace hkt::train
