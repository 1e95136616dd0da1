#include "hkt/train/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/train/dry_run.h"
#include "hkt/train/tiny_test_util.h"

namespace hkt::train {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

RunRequest TinyRequest(const std::filesystem::path& out) {
  RunRequest request;
  request.config = TinyConfig();
  request.config.train.steps = 6;
  request.config.train.eval_every = 3;
  request.config.train.threads = 1;
  request.out = out;
  return request;
}

std::unique_ptr<TrainObserver> Silent(const TrainStart&) {
  return std::make_unique<TrainObserver>();
}

TEST(JobsTest, TrainResumeEvaluate) {
  const TemporaryFolder folder;
  RunRequest request = TinyRequest(folder.path() / "run");
  TrainStart start{.folder = io::RunFolder(""), .config = {}, .task = {}, .progress = {}};
  const auto begin = [&](const TrainStart& s) {
    start = s;
    return std::make_unique<TrainObserver>();
  };
  const TrainSummary summary = TrainRun(request, begin);
  EXPECT_EQ(summary.end, TrainEnd::kFinished);
  EXPECT_EQ(summary.progress.step, 6);
  EXPECT_EQ(start.train_samples, 20'000);
  EXPECT_FALSE(start.resumed);
  EXPECT_GT(summary.majority_share, 0.1);
  EXPECT_EQ(ToJson(summary)["best"]["step"], summary.progress.best->step);

  request.resume = true;
  const TrainSummary again = TrainRun(request, begin);
  EXPECT_TRUE(start.finished);
  EXPECT_EQ(again.progress, summary.progress);

  const auto report = EvaluateRun(
      {.run = request.out, .split = "validation", .data = "", .batch = 100, .threads = 1});
  EXPECT_EQ(report["accuracy"], summary.progress.best->accuracy);
  EXPECT_NEAR(report["loss"].get<double>(), summary.progress.best->loss, 1e-6);
  EXPECT_EQ(report["weights"]["validation"]["step"], summary.progress.best->step);
  WriteEvaluation(request.out, report);
  EXPECT_EQ(io::ParseJson<nlohmann::ordered_json>(io::ReadFile(folder.path() / "run" / "eval.json"),
                                                  "eval"),
            report);
}

TEST(JobsTest, ATrainingThatLearnedNothingIsAnError) {
  const TemporaryFolder folder;
  RunRequest request = TinyRequest(folder.path() / "run");
  request.config.model.score_gain = 1e300;  // infinite scores: no step is finite, nor an evaluation
  EXPECT_THAT(
      [&] { TrainRun(request, Silent); },
      ::testing::ThrowsMessage<Error>(::testing::HasSubstr("there are no weights; lower --lr")));
}

TEST(JobsTest, AnEditedConfigurationIsNotResumed) {
  const TemporaryFolder folder;
  RunRequest request = TinyRequest(folder.path() / "run");
  int steps = 0;
  TrainRun(request, Silent, [&] { return ++steps > 6; });
  const io::RunFolder run(request.out);
  Config config = run.ReadConfig();
  config.train.lr *= 2;
  run.WriteConfig(config);
  request = {
      .config = {}, .given = {}, .out = request.out, .resume = true, .from_step = std::nullopt};
  EXPECT_THAT([&] { TrainRun(request, Silent); },
              ::testing::ThrowsMessage<Error>(::testing::AllOf(
                  ::testing::HasSubstr("config.json is not what the run began with"),
                  ::testing::HasSubstr("lr is"))));
}

TEST(JobsTest, OneBatchIsLearnedByHeart) {
  const TemporaryFolder folder;
  RunRequest request = TinyRequest(folder.path() / "run");
  request.config.train.overfit_batch = true;
  request.config.train.accumulate = 2;
  request.config.train.steps = 150;
  request.config.train.eval_every = 50;
  request.config.train.lr = 0.02;
  request.config.model.dropout = 0;
  TrainStart start{.folder = io::RunFolder(""), .config = {}, .task = {}, .progress = {}};
  const TrainSummary summary = TrainRun(request, [&](const TrainStart& s) {
    start = s;
    return std::make_unique<TrainObserver>();
  });
  EXPECT_EQ(start.train_samples, 8);
  EXPECT_EQ(start.validation_samples, 8);
  EXPECT_EQ(summary.progress.samples, 150 * 8);
  EXPECT_EQ(summary.progress.best->accuracy, 1);
  const auto json = ToJson(summary);
  EXPECT_EQ(json["overfit_batch"], true);
  EXPECT_EQ(json["lambda"].size(), 1u);  // the best weights', a layer
  EXPECT_EQ(json["next"], "hkt eval " + request.out);
  EXPECT_GT(json["flops_per_second"], 0);
  request.resume = true;
  EXPECT_EQ(TrainRun(request, Silent).progress, summary.progress);

  request.config.data.task = "cifar10";
  request.config.train.augment = true;
  EXPECT_THAT([&] { Resolve(request.config); },
              ThrowsMessage<UsageError>(HasSubstr("leave augment out")));
}

TEST(JobsTest, DataThatFailMakeNoFolder) {
  const TemporaryFolder folder;
  RunRequest request = TinyRequest(folder.path() / "run");
  request.config.data.data = folder.path() / "nothing-there";
  EXPECT_THROW(TrainRun(request, Silent), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "run"));
}

TEST(JobsTest, DryRunIsRealAndWritesNothing) {
  Config config = TinyConfig();
  config.train.accumulate = 2;
  config.train.steps = 1;  // fewer than the steps that are timed
  const DryRunReport report = DryRun(config, {.warmup_steps = 1, .steps = 3, .max_seconds = 60});
  EXPECT_EQ(report.step_seconds.size(), 3u);
  EXPECT_EQ(report.tokens_per_step, 4 * 96 * 2);
  EXPECT_GT(report.parameters, 1000);
  EXPECT_GT(report.peak_memory_bytes, 10 << 20);
  EXPECT_GT(report.median_step_seconds, 0);
  EXPECT_EQ(DryRun(config, {.warmup_steps = 5, .steps = 5, .max_seconds = 0}).step_seconds.size(),
            1u);
}

}  // namespace
}  // namespace hkt::train
