#include "hkt/train/trainer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <limits>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/io/json_lines.h"
#include "hkt/io/safetensors.h"
#include "hkt/train/evaluate.h"
#include "hkt/train/report.h"
#include "hkt/train/system.h"
#include "hkt/train/test_run_test_util.h"

namespace hkt::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(TrainerTest, ThirtySevenStopSixtyThreeIsAHundred) {
  TestRun straight, stopped;
  EXPECT_EQ(straight.Open()->Run(), TrainEnd::kFinished);
  EXPECT_EQ(stopped.Open()->Run([&] { return stopped.recorder.steps.size() == 37; }),
            TrainEnd::kStopped);
  EXPECT_EQ(stopped.recorder.saves.back(), 37);
  auto second = stopped.Open(/*resume=*/true);
  EXPECT_EQ(second->progress().step, 37);
  EXPECT_EQ(second->Run(), TrainEnd::kFinished);
  EXPECT_EQ(stopped.recorder.steps.size(), 100u);
  ExpectSameRun(straight, stopped);
}

// Stops at whichever question comes: between steps, inside an accumulation (the step is repeated),
// inside an evaluation.
TEST(TrainerTest, StoppedAnywhereManyTimesIsTheSame) {
  Config config = TinyConfig();
  config.train.accumulate = 3;
  config.train.steps = 40;
  config.train.eval_every = 5;
  config.train.log_every = 7;  // the mean over a window that a stop cuts in two
  TestRun straight(config), stopped(config);
  EXPECT_EQ(straight.Open()->Run(), TrainEnd::kFinished);
  Random random({5});
  TrainEnd end = TrainEnd::kStopped;
  int sessions = 0;
  for (; end == TrainEnd::kStopped; ++sessions) {
    auto questions = static_cast<int64_t>(random.Below(40));
    end = stopped.Open(sessions > 0)->Run([&] { return questions-- == 0; });
  }
  EXPECT_GT(sessions, 5);
  ExpectSameRun(straight, stopped);
}

TEST(TrainerTest, ResumeOfAKilledRunGoesBackToTheLastSave) {
  TestRun straight, killed;
  straight.Open()->Run();
  {
    auto trainer = killed.Open();
    killed.recorder.after_step = [](int64_t step) {
      if (step == 48) throw std::runtime_error("killed");
    };
    EXPECT_THROW(trainer->Run(), std::runtime_error);
    killed.recorder.after_step = nullptr;
  }
  EXPECT_EQ(io::ReadJsonLines(killed.folder.metrics()).back()["step"], 48);
  auto trainer = killed.Open(true);
  EXPECT_EQ(trainer->progress().step, 40);
  EXPECT_EQ(io::ReadJsonLines(killed.folder.metrics()).back()["step"], 40);
  trainer->Run();
  ExpectSameRun(straight, killed);
}

// The first session leaves inside the evaluation, the second is killed after it, before its save.
TEST(TrainerTest, AnEvaluationThatIsRepeatedIsWrittenOnce) {
  Config config = TinyConfig();
  config.train.steps = 60;
  config.train.save_every = 0;
  for (const int64_t step : {20, 60}) {
    TestRun straight(config), killed(config);
    straight.Open()->Run();
    int64_t questions = 0;
    killed.Open()->Run([&] {
      const auto steps = static_cast<int64_t>(killed.recorder.steps.size());
      return steps == step && ++questions == 2;
    });
    const std::string state = io::ReadFile(killed.folder.state());
    killed.Open(true)->Run();
    io::WriteFileAtomically(killed.folder.state(), state);
    auto trainer = killed.Open(true);
    EXPECT_EQ(trainer->progress().step, step);
    EXPECT_LT(trainer->progress().evaluated_step, step);
    trainer->Run();
    ExpectSameRun(straight, killed);
  }
}

TEST(TrainerTest, KilledBeforeTheFirstSaveStartsAnew) {
  TestRun straight, killed;
  straight.Open()->Run();
  killed.recorder.after_step = [](int64_t step) {
    if (step == 5) throw std::runtime_error("killed");
  };
  EXPECT_THROW(killed.Open()->Run(), std::runtime_error);
  killed.recorder.after_step = nullptr;
  auto trainer = killed.Open(true);
  EXPECT_EQ(trainer->progress().step, 0);
  trainer->Run();
  ExpectSameRun(straight, killed);
}

TEST(TrainerTest, FinishedRunStaysAsItIs) {
  TestRun run;
  run.Open()->Run();
  const std::string state = io::ReadFile(run.folder.state()),
                    metrics = io::ReadFile(run.folder.metrics());
  auto trainer = run.Open(true);
  EXPECT_TRUE(trainer->finished());
  EXPECT_EQ(trainer->Run(), TrainEnd::kFinished);
  EXPECT_EQ(io::ReadFile(run.folder.state()), state);
  EXPECT_EQ(io::ReadFile(run.folder.metrics()), metrics);
}

TEST(TrainerTest, TimeLimitSavesAndElapsedTimeAddsUp) {
  TestRun run;
  run.config.train.max_time = 1e-9;
  EXPECT_EQ(run.Open()->Run(), TrainEnd::kTimeUp);
  EXPECT_EQ(run.recorder.saves, std::vector<int64_t>{0});
  run.config.train.max_time = 0;
  EXPECT_EQ(run.Open(true)->Run([&] { return run.recorder.steps.size() == 50; }),
            TrainEnd::kStopped);
  const Progress before = run.Open(true)->progress();
  EXPECT_GT(before.elapsed_seconds, 0);
  EXPECT_GT(before.cpu_seconds, 0);
  auto last = run.Open(true);
  EXPECT_EQ(last->Run(), TrainEnd::kFinished);
  EXPECT_GT(last->progress().elapsed_seconds, before.elapsed_seconds);
  EXPECT_GT(last->progress().cpu_seconds, before.cpu_seconds);
  // Processor time is the training's own, not what this process used before it.
  double noted = 0;
  for (const auto& line : io::ReadJsonLines(run.folder.metrics())) {
    if (line["kind"] == "train") continue;
    EXPECT_GE(line["cpu_seconds"].get<double>(), noted) << line["kind"];
    noted = line["cpu_seconds"].get<double>();
  }
  EXPECT_GT(noted, before.cpu_seconds);
  TestRun other;
  auto trainer = other.Open();
  const double used = CpuSeconds();
  trainer->Run();
  EXPECT_LE(trainer->progress().cpu_seconds, CpuSeconds() - used);
}

TEST(TrainerTest, AKillBeforeTheEndsLineIsMadeUpFor) {
  TestRun straight, killed;
  straight.Open()->Run();
  killed.Open()->Run();
  const std::string state = io::ReadFile(killed.folder.state());
  io::DropLines(killed.folder.metrics(), [](const auto& line) { return line["kind"] == "end"; });
  EXPECT_NE(killed.Metrics(), straight.Metrics());
  EXPECT_EQ(killed.Open(true)->Run(), TrainEnd::kFinished);
  EXPECT_EQ(io::ReadFile(killed.folder.state()), state);
  ExpectSameRun(straight, killed);
  EXPECT_EQ(killed.Open(true)->Run(), TrainEnd::kFinished);
  ExpectSameRun(straight, killed);
}

// The last parameter's gradient times a number.
void SpoilGradients(const Trainer& trainer, const double* factor) {
  trainer.model().parameters().back().second.register_hook(
      [factor](const at::Tensor& gradient) { return gradient.mul(*factor); });
}

TEST(TrainerTest, StepsThatAreNotFiniteAreSkippedAndCounted) {
  TestRun run;
  run.config.train.save_every = 5;
  double factor = 1;
  run.recorder.after_step = [&](int64_t step) {
    factor = step == 8 ? kInfinity : step == 9 ? kNaN : 1;
  };
  auto trainer = run.Open();
  SpoilGradients(*trainer, &factor);
  EXPECT_EQ(trainer->Run(), TrainEnd::kFinished);
  EXPECT_EQ(trainer->progress().skipped, 2);
  EXPECT_EQ(run.recorder.steps.at(9).end, StepOutcome::End::kSkipped);
  EXPECT_EQ(run.recorder.steps.at(10).end, StepOutcome::End::kSkipped);
  EXPECT_EQ(run.recorder.steps.at(11).end, StepOutcome::End::kUpdated);
  // The save of step 10 waits for a good step.
  EXPECT_EQ(run.recorder.saves[0], 5);
  EXPECT_EQ(run.recorder.saves[1], 11);
  EXPECT_EQ(run.recorder.saves[2], 15);
  EXPECT_EQ(io::ReadJsonLines(run.folder.metrics())[8]["loss"], nullptr);
}

// One or two bad batches say little about the weights: who leaves then keeps the good steps. More
// do, and it is said.
TEST(TrainerTest, LeavingAfterSkippedSteps) {
  for (int64_t skipped : {1, 2, 3}) {
    TestRun run;
    run.config.train.save_every = 10;
    double factor = 1;
    auto trainer = run.Open();
    SpoilGradients(*trainer, &factor);
    run.recorder.after_step = [&](int64_t step) { factor = step >= 15 ? kInfinity : 1; };
    EXPECT_EQ(trainer->Run([&] { return trainer->progress().step == 15 + skipped; }),
              TrainEnd::kStopped);
    const bool kept = skipped < 3;
    EXPECT_EQ(run.Open(true)->progress().step, kept ? 15 + skipped : 10);
    EXPECT_EQ(run.recorder.warnings.size(), kept ? 0u : 1u);
  }
}

TEST(TrainerTest, TwentyInARowEndTrainingAndKeepTheLastGoodState) {
  TestRun run;
  double factor = 1;
  auto trainer = run.Open();
  SpoilGradients(*trainer, &factor);
  std::string good;
  run.recorder.after_step = [&](int64_t step) {
    if (step < 33) return;
    if (step == 33) good = io::ReadFile(run.folder.state());
    factor = kInfinity;
  };
  EXPECT_THAT([&] { trainer->Run(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("20 steps in a row"), HasSubstr("--lr"))));
  EXPECT_EQ(trainer->progress().step, 53);
  EXPECT_EQ(io::ReadFile(run.folder.state()), good);
  EXPECT_EQ(run.Open(true)->progress().step, 30);
}

TEST(TrainerTest, WeightsThatAreNotFiniteNeverReplaceGoodOnes) {
  TestRun run;
  run.config.train.save_every = 1;
  run.config.train.eval_every = 1;
  auto trainer = run.Open();
  std::string state, model;
  run.recorder.after_step = [&](int64_t step) {
    if (step != 13) return;
    // The step itself was good; its result is not.
    const at::NoGradGuard no_grad;
    trainer->model().parameters()[0].second.fill_(kNaN);
    state = io::ReadFile(run.folder.state());
    model = io::ReadFile(run.folder.model());
  };
  EXPECT_THROW(trainer->Run(), Error);
  EXPECT_EQ(io::ReadFile(run.folder.state()), state);
  EXPECT_EQ(io::ReadFile(run.folder.model()), model);
  EXPECT_EQ(run.Open(true)->progress().step, 12);
}

TEST(TrainerTest, EvaluationThatIsNotFiniteIsNeverTheBest) {
  TestRun run;
  run.config.train.steps = 1;
  auto trainer = run.Open();
  run.recorder.after_step = [&](int64_t) {  // finite weights whose products are not
    const at::NoGradGuard no_grad;
    for (const auto& [name, parameter] : trainer->model().parameters()) {
      if (name == "head.weight") parameter.fill_(3e38);
    }
  };
  EXPECT_EQ(trainer->Run(), TrainEnd::kFinished);
  ASSERT_EQ(run.recorder.evaluations.size(), 1u);
  EXPECT_FALSE(std::isfinite(run.recorder.evaluations[0].point.loss));
  EXPECT_FALSE(run.recorder.evaluations[0].is_best);
  EXPECT_FALSE(trainer->progress().best.has_value());
  EXPECT_FALSE(std::filesystem::exists(run.folder.model()));
  EXPECT_TRUE(run.Open(/*resume=*/true)->finished());
}

TEST(TrainerTest, FullDiskIsAWarningAndTheOldStateStays) {
  TestRun straight, full;
  straight.Open()->Run();
  auto trainer = full.Open();
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ::getrlimit(RLIMIT_FSIZE, &before);
  std::string state;
  full.recorder.after_step = [&](int64_t step) {
    // From step 15 to 35 no file may grow beyond 64 bytes: states, models and metrics of that time
    // are lost.
    const rlimit limit = {step >= 15 && step < 35 ? 64 : before.rlim_cur, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    if (step == 34) state = io::ReadFile(full.folder.state());
  };
  EXPECT_EQ(trainer->Run(), TrainEnd::kFinished);
  ::setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(full.recorder.saves, (std::vector<int64_t>{10, 40, 50, 60, 70, 80, 90, 100}));
  EXPECT_THAT(full.recorder.warnings,
              ::testing::Contains(AllOf(HasSubstr("state.safetensors"), HasSubstr("unchanged"))));
  ASSERT_FALSE(state.empty());
  ExpectSameTensors(straight.folder.state(), full.folder.state());
}

TEST(TrainerTest, FailedFinalSaveIsAnErrorAndTheRunGoesOnLater) {
  TestRun straight, full;
  straight.Open()->Run();
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before;
  ::getrlimit(RLIMIT_FSIZE, &before);
  full.recorder.after_step = [&](int64_t step) {
    const rlimit limit = {64, before.rlim_max};
    if (step == 95) ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  EXPECT_THROW(full.Open()->Run(), Error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  full.recorder.after_step = nullptr;
  EXPECT_EQ(full.Open(true)->Run(), TrainEnd::kFinished);
  ExpectSameRun(straight, full);
}

TEST(TrainerTest, BestIsByAccuracyThenByLoss) {
  TestRun run;
  run.config.train.eval_every = 1;
  run.validation = TinyData(3, 4);  // few samples: many ties
  auto trainer = run.Open();
  trainer->Run();
  std::optional<ValidationPoint> best;
  int ties = 0;
  for (const EvaluationReport& report : run.recorder.evaluations) {
    const bool tie = best && report.point.accuracy == best->accuracy;
    const bool better =
        !best || report.point.accuracy > best->accuracy || (tie && report.point.loss < best->loss);
    EXPECT_EQ(report.is_best, better) << report.point.step;
    ties += tie;
    if (better) best = report.point;
  }
  EXPECT_GT(ties, 0);
  EXPECT_EQ(trainer->progress().best->step, best->step);
  const TrainedModel trained = [&] {
    run.folder.WriteConfig(run.config);
    return LoadTrained(run.folder);
  }();
  ASSERT_TRUE(trained.figures.has_value());
  EXPECT_EQ(trained.figures->step, best->step);
  EXPECT_EQ(Evaluate(trained.model, run.validation, 4)->loss, best->loss);
}

TEST(TrainerTest, ResumeRefusesOtherDataAndNewerVersions) {
  TestRun run;
  run.config.train.steps = 10;
  run.Open()->Run();
  data::Dataset original = run.train;
  run.train.tokens[3] = static_cast<uint16_t>(run.train.tokens[3] % 15 + 1);
  EXPECT_THAT([&] { run.Open(true); },
              ThrowsMessage<Error>(AllOf(HasSubstr("other data"), HasSubstr("--data"))));
  run.train = original;
  run.Open(true);

  io::Metadata metadata;
  io::TensorViews tensors;
  const io::SafetensorsFile file(run.folder.state());
  metadata = file.metadata();
  tensors = file.tensors();
  metadata["hkt_version"] = "99.0.0";
  io::WriteSafetensors(run.folder.state(), tensors, metadata);
  EXPECT_THAT([&] { run.Open(true); }, ThrowsMessage<Error>(HasSubstr("update hkt")));
  metadata["hkt_version"] = "0.0.1";
  metadata["progress"] = "{}";
  io::WriteSafetensors(run.folder.state(), tensors, metadata);
  EXPECT_THAT([&] { run.Open(true); },
              ThrowsMessage<Error>(HasSubstr("progress of the run is not readable")));
}

// Gone, cut short or of flipped bits, in the middle of a run or behind its end.
TEST(TrainerTest, LostBestWeightsAreMadeAgain) {
  const std::vector<std::function<void(const std::filesystem::path&)>> losses = {
      [](const auto& path) { std::filesystem::remove(path); },
      [](const auto& path) { std::filesystem::resize_file(path, 300); },
      [](const auto& path) {
        std::string bytes = io::ReadFile(path);
        bytes[bytes.size() - 5] ^= 4;
        io::WriteFileAtomically(path, bytes);
      },
  };
  for (const auto& lose : losses) {
    for (size_t steps : {size_t{30}, size_t{1000}}) {
      TestRun run;
      run.Open()->Run([&] { return run.recorder.steps.size() == steps; });
      lose(run.folder.model());
      run.Open(true)->Run();
      EXPECT_THAT(run.recorder.warnings,
                  ::testing::ElementsAre(AllOf(HasSubstr("model.safetensors"),
                                               HasSubstr("best weights from here on"))));
      EXPECT_NO_THROW(io::SafetensorsFile{run.folder.model()}) << steps;
    }
  }
}

TEST(EvaluateTest, TenSamplesInFoursEachOnceWeightedBySamples) {
  const Config config = TinyConfig();
  const data::Dataset dataset = TinyData(10, 7);
  Model model(config, data::Describe(config.data));
  model.SetTraining(true);
  const at::Tensor random = RandomState();
  const auto fours = Evaluate(model, dataset, 4);
  EXPECT_TRUE(model.is_training());
  EXPECT_TRUE(at::equal(random, RandomState()));  // evaluation must not move dropout
  EXPECT_EQ(fours->samples, 10);
  double loss = 0;
  int correct = 0;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    data::Dataset one;
    one.Add(dataset.sequence(i), dataset.labels[static_cast<size_t>(i)]);
    const auto single = Evaluate(model, one, 1);
    loss += single->loss;
    correct += single->accuracy == 1;
    EXPECT_EQ(single->predicted[0], fours->predicted[static_cast<size_t>(i)]) << i;
    EXPECT_NEAR(single->probability[0], fours->probability[static_cast<size_t>(i)], 1e-5) << i;
  }
  EXPECT_NEAR(fours->loss, loss / 10, 1e-5);
  EXPECT_EQ(fours->accuracy, correct / 10.0);
  int asked = 0;
  EXPECT_FALSE(Evaluate(model, dataset, 4, [&] { return ++asked == 3; }).has_value());
  EXPECT_THROW(Evaluate(model, data::Dataset(), 4), Error);
}

TEST(ReportTest, CountsByHand) {
  data::Dataset dataset;
  const auto add = [&](std::vector<uint16_t> tokens, int32_t label) { dataset.Add(tokens, label); };
  add({11, 3, 4, 15}, 2);             // [MIN 2 3 ]
  add({12, 3, 4, 15}, 3);             // [MAX 2 3 ]
  add({12, 3, 11, 4, 5, 15, 15}, 3);  // [MAX 2 [MIN 3 4 ] ]
  add({5}, 4);
  const auto report =
      ClassificationReport(data::Describe(TinyConfig().data), dataset, {2, 3, 2, 4});
  EXPECT_EQ(report["samples"], 4);
  EXPECT_EQ(report["accuracy"], 0.75);
  EXPECT_NEAR(report["standard_error"].get<double>(), std::sqrt(0.75 * 0.25 / 4), 1e-15);
  EXPECT_EQ(report["majority"]["class"], "3");
  EXPECT_EQ(report["majority"]["share"], 0.5);
  EXPECT_EQ(report["classes"][3]["recall"], 0.5);
  EXPECT_EQ(report["classes"][2]["precision"], 0.5);
  EXPECT_EQ(report["classes"][0]["recall"], nullptr);
  EXPECT_EQ(report["confusion"][3][2], 1);
  EXPECT_EQ(report["by_depth"]["3"]["accuracy"], 0.0);
  EXPECT_EQ(report["by_depth"]["2"]["samples"], 2);
  EXPECT_EQ(report["by_root_operator"]["MAX"]["accuracy"], 0.5);
  EXPECT_THROW(ClassificationReport(data::Describe(TinyConfig().data), dataset, {1}), Error);
}

}  // namespace
}  // namespace hkt::train
