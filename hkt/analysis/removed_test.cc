#include "hkt/analysis/removed.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/isfinite.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hkt/analysis/analysis_test_util.h"
#include "hkt/base/error.h"

namespace hkt::analysis {
namespace {

Config Small(int64_t levels, bool hybrid) {
  Config config;
  config.model.d_model = 8;
  config.model.d_ff = 12;
  config.model.layers = 2;
  config.model.levels = levels;
  config.model.hybrid = hybrid;
  Resolve(config);
  return config;
}

const data::TaskInfo kTask{"listops", 16, 1, 40, {"a", "b", "c"}};

// Large logits and gates of every size, so that no level is idle.
train::Model RandomModel(const Config& config) {
  train::Model model(config, kTask);
  const at::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (const auto& [name, parameter] : model.parameters())
    if (name.find("logits") != std::string::npos)
      parameter.copy_(Normal(parameter.sizes(), ++seed));
  model.SetTraining(false);
  return model;
}

at::Tensor Logits(const train::Model& model) {
  const at::NoGradGuard no_grad;
  const at::Tensor ids = (at::arange(3 * 37, at::kLong) % 15 + 1).view({3, 37});
  return model.Forward(ids, std::nullopt).to(at::kDouble);
}

// theory.md 4.1 (d), the definition of the ablation: without its last level a model is the model of
// one level less with the other logits.
TEST(WithoutLevels, EqualsTheModelThatHasThemNot) {
  for (const bool hybrid : {true, false}) {
    const train::Model whole = RandomModel(Small(3, hybrid));
    for (const int64_t keep : {1, 2}) {
      train::Model part(Small(keep, hybrid), kTask);
      part.SetTraining(false);
      const at::NoGradGuard no_grad;
      for (const auto& [name, target] : part.parameters()) {
        for (const auto& [other, source] : whole.parameters()) {
          if (name != other) continue;
          const bool logits = name.find("logits") != std::string::npos;
          target.copy_(logits ? source.slice(1, 0, keep) : source);
        }
      }
      std::vector<int64_t> removed;
      for (int64_t l = keep; l < 3; ++l) removed.push_back(l);
      const at::Tensor before = Logits(whole);
      at::Tensor without;
      {
        const WithoutLevels guard(whole, removed);
        without = Logits(whole);
      }
      EXPECT_LE(Distance(without, Logits(part)), 1e-5);  // fp32, logits of order 1
      EXPECT_GT(Distance(without, before), 1e-3);
      EXPECT_EQ(Distance(Logits(whole), before), 0);  // put back
    }
  }
}

TEST(WithoutLevels, TheFirstLevelCanGoToo) {
  const train::Model model = RandomModel(Small(3, true));
  const WithoutLevels guard(model, {0});
  EXPECT_TRUE(at::isfinite(Logits(model)).all().item<bool>());
}

TEST(WithoutLevels, OneHasToStay) {
  const train::Model model = RandomModel(Small(3, true));
  const at::Tensor before = Logits(model);
  EXPECT_THROW(WithoutLevels(model, {0, 1, 2}), Error);
  EXPECT_EQ(Distance(Logits(model), before), 0);
}

TEST(RemovedSets, EachLevelAndAllCoarseOnes) {
  using Sets = std::vector<std::vector<int64_t>>;
  EXPECT_EQ(RemovedSets(1), Sets{});
  EXPECT_EQ(RemovedSets(2), (Sets{{0}, {1}}));
  EXPECT_EQ(RemovedSets(3), (Sets{{0}, {1}, {2}, {1, 2}}));
}

TEST(LevelsRemoved, ReportsPairedChanges) {
  const Config config = Small(3, true);
  AnalysisRun run{{config, kTask, RandomModel(config), "", std::nullopt},
                  data::Dataset(),
                  data::Dataset(),
                  false};
  for (int i = 0; i < 40; ++i) {
    std::vector<uint16_t> sequence;
    for (int t = 0; t < 5 + i % 20; ++t)
      sequence.push_back(static_cast<uint16_t>(1 + (3 * i + 7 * t * t) % 15));
    run.validation.Add(sequence, i % 3);
  }
  int64_t heard = 0;
  const Json json = LevelsRemoved(run, 30, [&](int64_t done, int64_t all) {
    heard += 1;
    EXPECT_EQ(done, heard);
    EXPECT_EQ(all, 5);
  });
  EXPECT_EQ(heard, 5);
  EXPECT_EQ(json["samples"], 30);
  ASSERT_EQ(json["rows"].size(), 5u);
  const double whole = json["rows"][0]["accuracy"].get<double>();
  EXPECT_EQ(json["rows"][0]["change"], 0.0);
  for (const Json& row : json["rows"]) {
    EXPECT_NEAR(row["accuracy"].get<double>() - whole, row["change"].get<double>(), 1e-12);
    EXPECT_GE(row["predictions_changed"].get<double>(),
              std::abs(row["change"].get<double>()) - 1e-12);
  }
  EXPECT_EQ(json["rows"][4]["removed"], (std::vector<int64_t>{1, 2}));
}

}  // namespace
}  // namespace hkt::analysis
