// What the options of a run beyond the plain loop do: the average of the weights, patience, kept
// states, event files, figures of the fusion.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/train/average.h"
#include "hkt/train/evaluate.h"
#include "hkt/train/fusion.h"
#include "hkt/train/jobs.h"
#include "hkt/train/test_run_test_util.h"

namespace hkt::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Json = nlohmann::ordered_json;

TEST(AverageTest, EqualsAPlainLoop) {
  NamedTensors parameters = {{"a", at::full({2}, 1.0)}, {"b", at::full({}, -2.0)}};
  WeightAverage average(parameters, 0.5);
  double a = 1, b = -2;
  for (int n = 1; n <= 20; ++n) {
    parameters[0].second.fill_(1.0 + n * n);
    parameters[1].second.fill_(std::sin(n));
    average.Update(n);
    const double decay = std::min(0.5, (1.0 + n) / (10.0 + n));
    a = decay * a + (1 - decay) * (1.0 + n * n);
    b = decay * b + (1 - decay) * std::sin(n);
    // fp32 in three roundings an update, of which each later one keeps a half.
    EXPECT_NEAR(average.State()[0].second[1].item<double>(), a, 8 * 0x1p-24 * a) << n;
    EXPECT_NEAR(average.State()[1].second.item<double>(), b, 8 * 0x1p-24 * 2) << n;
  }
  const at::Tensor before = parameters[0].second.clone();
  {
    const WeightAverage::InPlace in_place(average);
    EXPECT_TRUE(at::equal(parameters[0].second, average.State()[0].second));
    EXPECT_FALSE(at::equal(parameters[0].second, before));
  }
  EXPECT_TRUE(at::equal(parameters[0].second, before));
}

Config WithAverage() {
  Config config = TinyConfig();
  config.train.ema = 0.8;
  return config;
}

TEST(EmaTest, StoppedAndResumedIsTheSame) {
  TestRun straight(WithAverage()), stopped(WithAverage());
  EXPECT_EQ(straight.Open()->Run(), TrainEnd::kFinished);
  stopped.RunUntil(*stopped.Open(), 37);
  EXPECT_EQ(stopped.Open(true)->Run(), TrainEnd::kFinished);
  ExpectSameRun(straight, stopped);
}

// Training itself is that of a run without; what is evaluated and kept is the average.
TEST(EmaTest, TrainsTheWeightsAndKeepsTheirAverage) {
  TestRun plain, averaged(WithAverage());
  plain.Open()->Run();
  auto trainer = averaged.Open();
  trainer->Run();
  for (const auto& [step, outcome] : plain.recorder.steps)
    EXPECT_EQ(averaged.recorder.steps.at(step).loss, outcome.loss);
  const io::SafetensorsFile state(averaged.folder.state()), other(plain.folder.state());
  const auto bytes = [](const io::SafetensorsFile& file, const std::string& name) {
    const auto data = file.at(name).data;
    return std::vector<std::byte>(data.begin(), data.end());
  };
  EXPECT_EQ(bytes(state, "model.head.weight"), bytes(other, "model.head.weight"));
  EXPECT_NE(bytes(state, "ema.head.weight"), bytes(state, "model.head.weight"));

  averaged.folder.WriteConfig(averaged.config);
  const TrainedModel kept = LoadTrained(averaged.folder);
  EXPECT_EQ(Evaluate(kept.model, averaged.validation, 4)->loss, kept.figures->loss);
  EXPECT_EQ(kept.figures->step, trainer->progress().best->step);
  if (kept.figures->step == trainer->progress().step) {
    EXPECT_EQ(bytes(io::SafetensorsFile(averaged.folder.model()), "head.weight"),
              bytes(state, "ema.head.weight"));
  }
}

TEST(EmaTest, SkippedStepsAreNotAveraged) {
  TestRun run(WithAverage());
  double factor = 1;
  auto trainer = run.Open();
  trainer->model().parameters().back().second.register_hook(
      [&](const at::Tensor& gradient) { return gradient.mul(factor); });
  const auto average = [&] {
    const io::SafetensorsFile file(run.folder.state());
    const auto data = file.at("ema.head.weight").data;
    return std::vector<std::byte>(data.begin(), data.end());
  };
  run.config.train.save_every = 1;
  run.recorder.after_step = [&](int64_t step) { factor = step >= 10 ? INFINITY : 1; };
  run.RunUntil(*trainer, 10);
  const auto before = average();
  run.RunUntil(*trainer, 12);
  EXPECT_EQ(average(), before);
  EXPECT_EQ(trainer->progress().skipped, 2);
}

// A rate of nearly nothing: after the first evaluation nothing gets better, or hardly.
Config Impatient() {
  Config config = TinyConfig();
  config.train.lr = 1e-30;
  config.train.eval_every = 5;
  config.train.patience = 3;
  return config;
}

TEST(PatienceTest, EndsAfterSoManyEvaluationsAndSaysSo) {
  TestRun run(Impatient());
  auto trainer = run.Open();
  EXPECT_EQ(trainer->Run(), TrainEnd::kPatience);
  EXPECT_TRUE(trainer->finished());
  EXPECT_EQ(trainer->progress().step, 20);  // best at 5; 10, 15 and 20 are no better
  EXPECT_EQ(trainer->progress().evaluations_since_best, 3);
  EXPECT_EQ(io::ReadJsonLines(run.folder.metrics()).back()["early"], true);
  EXPECT_EQ(run.recorder.saves.back(), 20);
  // Again: nothing to do. With more patience it goes on, to what a patient run would have been.
  EXPECT_EQ(run.Open(true)->Run(), TrainEnd::kPatience);
  run.config.train.patience = 5;
  EXPECT_EQ(run.Open(true)->Run(), TrainEnd::kPatience);
  TestRun patient(run.config);
  patient.Open()->Run();
  EXPECT_EQ(run.Metrics(), patient.Metrics());
  ExpectSameTensors(run.folder.state(), patient.folder.state());
}

TEST(PatienceTest, TheCountSurvivesAStop) {
  TestRun run(Impatient());
  run.RunUntil(*run.Open(), 13);
  auto trainer = run.Open(true);
  EXPECT_EQ(trainer->progress().evaluations_since_best, 1);
  EXPECT_EQ(trainer->Run(), TrainEnd::kPatience);
  EXPECT_EQ(trainer->progress().step, 20);
}

TEST(PatienceTest, NeedsEvaluations) {
  Config config = Impatient();
  config.train.eval_every = 0;
  EXPECT_THAT([&] { Resolve(config); }, ThrowsMessage<UsageError>(HasSubstr("set eval_every")));
}

TEST(KeepStatesTest, TheLastOnesAreThereAndEachGoesOn) {
  TestRun straight, run;
  straight.Open()->Run();
  run.config.train.keep_states = 3;
  run.Open()->Run();
  EXPECT_THAT(run.folder.kept_states(), ElementsAre(80, 90));
  ExpectSameRun(straight, run);
  for (const int64_t step : {90, 80}) {
    auto trainer = run.Open(true, step);
    EXPECT_EQ(trainer->progress().step, step);
    EXPECT_EQ(io::ReadJsonLines(run.folder.metrics()).back()["step"], step);
    for (const int64_t kept : run.folder.kept_states()) EXPECT_LT(kept, step);
    trainer->Run();
    ExpectSameRun(straight, run);
  }
  EXPECT_THAT(run.folder.kept_states(), ElementsAre(80, 90));
  EXPECT_EQ(run.Open(true, 100)->progress().step, 100);
  EXPECT_THAT(
      [&] { run.Open(true, 85); },
      ThrowsMessage<Error>(AllOf(HasSubstr("no state after that step"), HasSubstr("80, 90, 100"))));
  run.config.train.keep_states = 1;  // fewer on resuming: the others go with the next save
  run.RunUntil(*run.Open(true, 90), 95);
  EXPECT_TRUE(run.folder.kept_states().empty());
}

TEST(KeepStatesTest, ADamagedStateNamesTheOlderOnes) {
  TestRun run;
  run.config.train.keep_states = 2;
  run.RunUntil(*run.Open(), 37);
  std::filesystem::resize_file(run.folder.state(), 1000);
  EXPECT_THAT([&] { run.Open(true); }, ThrowsMessage<Error>(AllOf(HasSubstr("state.safetensors"),
                                                                  HasSubstr("--from-step 30"))));
  run.Open(true, 30)->Run();
  TestRun straight;
  straight.Open()->Run();
  ExpectSameTensors(straight.folder.state(), run.folder.state());
}

TEST(KeepStatesTest, WithoutTheNewestTheOlderOnesAreNamed) {
  TestRun run;
  run.config.train.keep_states = 2;
  run.RunUntil(*run.Open(), 37);
  std::filesystem::remove(run.folder.state());
  EXPECT_THAT([&] { run.Open(true); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("state.safetensors is not there"), HasSubstr("--from-step 30"))));
  EXPECT_EQ(run.Open(true, 30)->progress().step, 30);
}

TEST(KeepStatesTest, ARenamedStateIsRefusedAndNothingIsReplaced) {
  TestRun run;
  run.config.train.keep_states = 2;
  run.RunUntil(*run.Open(), 37);
  const std::string state = io::ReadFile(run.folder.state());
  std::filesystem::rename(run.folder.state_after(30), run.folder.state_after(20));
  EXPECT_THAT([&] { run.Open(true, 20); },
              ThrowsMessage<Error>(AllOf(HasSubstr("state-20.safetensors"),
                                         HasSubstr("holds the state after step 30, not 20"))));
  EXPECT_EQ(io::ReadFile(run.folder.state()), state);
}

TEST(KeepStatesTest, GoingBackBeforeTheBestWeightsWarns) {
  TestRun run;
  run.config.train.keep_states = 10;
  run.Open()->Run();
  const int64_t best = StoredFigures(io::SafetensorsFile(run.folder.model()))->step;
  ASSERT_GT(best, 10);
  run.recorder.warnings.clear();
  run.Open(true, 10);
  EXPECT_THAT(run.recorder.warnings,
              ElementsAre(AllOf(HasSubstr("model.safetensors still holds the weights of step " +
                                          std::to_string(best)),
                                HasSubstr("goes back before"))));
  run.recorder.warnings.clear();
  run.Open(true);  // nobody goes back now
  EXPECT_TRUE(run.recorder.warnings.empty());
}

TEST(OverfitBatchTest, ItsFiguresAreNotOfValidation) {
  TestRun run;
  run.config.train.overfit_batch = true;
  run.config.train.steps = 10;
  run.folder.WriteConfig(run.config);
  run.Open()->Run();
  const io::SafetensorsFile file(run.folder.model());
  EXPECT_TRUE(file.metadata().contains("overfit_batch"));
  EXPECT_FALSE(file.metadata().contains("validation"));
  EXPECT_EQ(StoredFigures(file)->step, 10);
  EvaluateRequest request;
  request.run = run.folder.root().string();
  request.split = "validation";
  const auto weights = EvaluateRun(request)["weights"];
  EXPECT_EQ(weights["overfit_batch"]["step"], 10);
  EXPECT_FALSE(weights.contains("validation"));
}

TEST(StateTest, StatesOfOlderVersionsGoOn) {
  TestRun straight, old;
  straight.Open()->Run();
  old.RunUntil(*old.Open(), 50);
  const io::SafetensorsFile file(old.folder.state());
  io::Metadata metadata = file.metadata();
  for (const char* key : {"progress", "config"}) {
    Json json = io::ParseJson<Json>(metadata[key], key);
    for (const char* later : {"multiply_adds", "evaluations_since_best", "window_multiply_adds",
                              "patience", "keep_states", "ema", "overfit_batch", "tensorboard",
                              "cpu_seconds", "fusion", "gate_start", "downsample", "undecimated"})
      json.erase(later);
    metadata[key] = io::CompactJson(json);
  }
  const io::TensorViews tensors = file.tensors();
  io::WriteSafetensors(old.folder.state(), tensors, metadata);
  auto trainer = old.Open(true);
  EXPECT_TRUE(std::isnan(trainer->progress().multiply_adds));
  EXPECT_EQ(trainer->Run(), TrainEnd::kFinished);
  ExpectSameTensors(straight.folder.state(), old.folder.state());
  EXPECT_EQ(io::ReadJsonLines(old.folder.metrics()).back()["flops_per_second"], nullptr);
  EXPECT_EQ(io::ReadJsonLines(old.folder.metrics()).back()["cpu_seconds"], nullptr);
}

TEST(MetricsTest, FiguresOfEveryLogStep) {
  TestRun run;
  run.config.train.steps = 20;
  auto trainer = run.Open();
  trainer->Run();
  const auto lines = io::ReadJsonLines(run.folder.metrics());
  const Json& line = lines[0];
  ASSERT_EQ(line["lambda"].size(), 1u);  // a layer
  ASSERT_EQ(line["gate"][0]["mean"].size(), 2u);
  double sum = 0;
  for (const auto& lambda : line["lambda"][0]["mean"]) sum += lambda.get<double>();
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_LE(line["gate"][0]["min"][0], line["gate"][0]["max"][0]);
  EXPECT_GT(line["peak_memory_bytes"], 1 << 20);
  EXPECT_GT(line["gradient_norm"], 0);
  // FLOP/s over tokens/s is FLOP a token; by the cost of a sequence of 2 … 12 tokens.
  const double per_token =
      line["flops_per_second"].get<double>() / line["tokens_per_second"].get<double>();
  EXPECT_GT(per_token, 6 * trainer->model().ForwardMultiplyAdds(2) / 2 * 0.9);
  EXPECT_LT(per_token, 6 * trainer->model().ForwardMultiplyAdds(12) / 2);
  double expected = 0;
  for (const auto& [step, outcome] : run.recorder.steps) expected += outcome.tokens > 0;
  EXPECT_EQ(expected, 20);
}

// The bytes of a parameter in model.safetensors or state.safetensors.
std::string Stored(const std::filesystem::path& path, const std::string& name) {
  const io::SafetensorsFile file(path);
  const auto data = std::as_bytes(file.at(name).data);
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

TEST(FusionTest, FrozenLevelWeightsStayAsTheyStartedAndAreSaved) {
  Config config = TinyConfig();
  config.model.fusion = "frozen";
  config.train.steps = 20;
  TestRun run(config);
  run.RunUntil(*run.Open(), 7);
  run.Open(/*resume=*/true)->Run();
  const Model start(config, run.task);
  const std::string levels = "blocks.0.attention.level_logits",
                    gates = "blocks.0.attention.gate_logits";
  for (const auto& [name, parameter] : start.parameters()) {
    if (name != levels && name != gates) continue;
    const std::string before(static_cast<const char*>(parameter.const_data_ptr()),
                             parameter.nbytes());
    for (const auto& [file, prefix] : {std::pair{run.folder.model(), std::string()},
                                       std::pair{run.folder.state(), std::string("model.")}})
      EXPECT_EQ(Stored(file, prefix + name) == before, name == levels) << file << " " << name;
  }
  const Json line = io::ReadJsonLines(run.folder.metrics()).at(0);
  EXPECT_NE(line["lambda"][0]["mean"][0], 0.5);
}

TEST(FusionTest, UniformLevelWeightsAreNoParameter) {
  Config config = TinyConfig();
  config.model.fusion = "uniform";
  config.train.steps = 5;
  TestRun run(config);
  run.Open()->Run();
  const io::SafetensorsFile file(run.folder.model());
  EXPECT_FALSE(file.tensors().contains("blocks.0.attention.level_logits"));
  EXPECT_FALSE(io::ReadJsonLines(run.folder.metrics()).at(0).contains("lambda"));
}

TEST(FusionTest, NumbersByHand) {
  at::Tensor levels = at::full({2, 2}, 0.0), gates = at::full({2, 2}, 0.0);
  levels[1][0] = std::log(3.0);
  gates[0][1] = std::log(9.0);
  const Json json = DescribeFusion({{"blocks.0.attention.level_logits", levels},
                                    {"blocks.0.attention.gate_logits", gates},
                                    {"head.weight", gates}});
  EXPECT_NEAR(json["lambda"][0]["mean"][0].get<double>(), (0.5 + 0.75) / 2, 1e-7);
  EXPECT_NEAR(json["lambda"][0]["min"][1].get<double>(), 0.25, 1e-7);
  EXPECT_NEAR(json["lambda"][0]["max"][1].get<double>(), 0.5, 1e-7);
  EXPECT_NEAR(json["gate"][0]["mean"][1].get<double>(), (0.9 + 0.5) / 2, 1e-7);
  EXPECT_TRUE(DescribeFusion({{"blocks.0.attention.level_logits", at::full({2, 1}, 0.0)}}).empty());
}

size_t EventFiles(const io::RunFolder& folder) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.root()))
    count += entry.path().filename().string().find("tfevents") != std::string::npos;
  return count;
}

TEST(TensorboardTest, OneFileASessionAndNoneWithout) {
  TestRun run;
  run.RunUntil(*run.Open(), 30);
  EXPECT_EQ(EventFiles(run.folder), 1u);
  run.Open(true)->Run();
  EXPECT_EQ(EventFiles(run.folder), 2u);
  run.Open(true)->Run();  // finished: nothing to say
  EXPECT_EQ(EventFiles(run.folder), 2u);
  TestRun without;
  without.config.train.tensorboard = false;
  without.Open()->Run();
  EXPECT_EQ(EventFiles(without.folder), 0u);
}

TEST(MetricsTest, ScalarsOfALine) {
  const io::Scalars scalars = ScalarsOf(
      {{"kind", "train"},
       {"step", 3},
       {"loss", nullptr},
       {"lr", 0.5},
       {"lambda",
        Json::array({Json{{"mean", {0.25, 0.75}}, {"min", {0.2, 0.7}}, {"max", {0.3, 0.8}}}})}});
  std::map<std::string, double> map(scalars.begin(), scalars.end());
  EXPECT_TRUE(std::isnan(map.at("train/loss")));
  EXPECT_EQ(map.at("train/lr"), 0.5);
  EXPECT_EQ(map.at("lambda/block0_level1"), 0.75);
  EXPECT_EQ(map.at("lambda_max/block0_level0"), 0.3);
  EXPECT_EQ(ScalarsOf({{"kind", "eval"}, {"split", "validation"}, {"accuracy", 1}, {"loss", 2}})[0],
            (std::pair<std::string, double>("validation/accuracy", 1)));
  EXPECT_TRUE(ScalarsOf({{"kind", "end"}, {"step", 3}}).empty());
}

}  // namespace
}  // namespace hkt::train
