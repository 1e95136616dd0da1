// theory.md 5 (but its last line, decoding).

#include "hkt/analysis/cost.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hkt/base/dims.h"
#include "hkt/nn/hkt_attention.h"

namespace hkt::analysis {
namespace {

ModelConfig Model(int64_t d, int64_t levels, bool hybrid = false, int64_t stride = 2) {
  Config config;
  config.model.d_model = d;
  config.model.levels = levels;
  config.model.hybrid = hybrid;
  config.model.stride = stride;
  config.model.kv_heads = config.model.heads;
  return config.model;
}

double Ratio(double a, double b) { return a / b; }

TEST(Cost, ScoreFactors) {
  EXPECT_EQ(ScoreFactor(1, 2), 1);
  EXPECT_EQ(ScoreFactor(2, 2), 1.25);
  EXPECT_EQ(ScoreFactor(3, 2), 1.3125);
  EXPECT_EQ(ScoreFactor(4, 2), 1.328125);
  EXPECT_NEAR(ScoreFactorLimit(2), 4.0 / 3, 1e-15);
  for (int64_t L = 1; L < 20; ++L) EXPECT_LT(ScoreFactor(L, 2), 4.0 / 3);
  EXPECT_NEAR(ScoreFactor(12, 3), ScoreFactorLimit(3), 1e-9);
}

// The table of theory.md 5 at L = 3, s = 2, part by part.
TEST(Cost, PartsOfALayer) {
  for (const auto& [T, d] : {std::pair<int64_t, int64_t>{512, 64}, {1024, 128}, {64, 64}}) {
    const nn::AttentionCost one = CostOf(Model(d, 1), T, false),
                            three = CostOf(Model(d, 3), T, false),
                            gated = CostOf(Model(d, 3, true), T, false);
    EXPECT_EQ(one.total(), 4 * T * d * d + 2 * T * T * d);
    EXPECT_EQ(one.downsample + one.branches, 0);
    EXPECT_EQ(Ratio(three.projections, one.projections), 1.375);
    EXPECT_EQ(three.downsample * 4, 3 * T * d * d + 9 * T * d);
    EXPECT_EQ(Ratio(three.scores, one.scores), 1.3125);
    EXPECT_EQ(three.values, one.values);
    EXPECT_EQ(gated.branches * 4, 7 * T * d * d + 21 * T * d);
    EXPECT_EQ(gated.total() - gated.branches, three.total());
    EXPECT_EQ(Ratio(three.scores + three.values, one.scores + one.values), 1.15625);
    EXPECT_NEAR(Ratio(three.projections + three.downsample, one.projections),
                1.5625 + 2.25 / (4 * static_cast<double>(d)), 1e-12);
  }
  // Backward: S, dQ and dK grow with the scores, dP and dV do not.
  EXPECT_EQ((3 * ScoreFactor(3, 2) + 2) / 5, 1.1875);
}

TEST(Cost, WholeLayer) {
  const auto ratio = [](int64_t T, int64_t d, bool causal) {
    return Ratio(CostOf(Model(d, 3), T, causal).total(), CostOf(Model(d, 1), T, causal).total());
  };
  EXPECT_NEAR(ratio(512, 64, false), 1.239, 5e-4);
  EXPECT_NEAR(ratio(1024, 128, false), 1.238, 5e-4);
  EXPECT_NEAR(ratio(64, 64, false), 1.433, 5e-4);
  EXPECT_NEAR(ratio(512, 64, true), 1.295, 5e-4);
  EXPECT_NEAR(ratio(1024, 128, true), 1.293, 5e-4);
  EXPECT_NEAR(ratio(1024, 64, true), 1.239, 5e-4);
  EXPECT_NEAR(ratio(16, 4096, false), 1.5625, 5e-3);      // T << d
  EXPECT_NEAR(ratio(1 << 20, 64, false), 1.15625, 1e-3);  // T >> d
}

// Exact when s^(L-1) divides T, otherwise above by less than 2 T / s^l + 1 a level.
TEST(Cost, ExactWhenTheStrideDividesTheLength) {
  for (const int64_t s : {2, 3}) {
    for (int64_t T = 1; T < 200; ++T) {
      double exact = 0, excess = 0, step = 1;
      for (int64_t l = 0; l < 4; ++l, step *= static_cast<double>(s)) {
        const double t = static_cast<double>(T) / step;
        const auto Tl = static_cast<double>(LevelLength(T, s, l));
        EXPECT_GE(Tl * Tl, t * t);
        EXPECT_LT(Tl * Tl - t * t, 2 * t + 1);
        exact += t * t;
        excess += Tl * Tl - t * t;
      }
      const auto scores = CostOf(Model(64, 4, false, s), T, false).scores / 64;
      EXPECT_NEAR(scores, exact + excess, 1e-6);
      EXPECT_EQ(excess < 1e-9, T % (s * s * s) == 0);
      if (T % (s * s * s) == 0) {
        EXPECT_NEAR(scores / static_cast<double>(T * T), ScoreFactor(4, s), 1e-12);
      }
    }
  }
}

TEST(Cost, CausalPairs) {
  const nn::AttentionCost one = CostOf(Model(64, 1), 512, true),
                          three = CostOf(Model(64, 3), 512, true);
  EXPECT_EQ(one.scores, 512 * 513 / 2 * 64);
  EXPECT_NEAR(Ratio(three.scores, one.scores), 1.31335, 5e-6);
}

// (3 L + 1) d^2 + …: 10 d^2 + 14 d, output bias and level logits; 2.5 times standard attention.
TEST(Cost, ParametersOfTheLayer) {
  const int64_t d = 64;
  const auto parameters = [](int64_t levels) {
    return nn::ParameterCount(nn::HktAttentionOptions{
        .d_model = 64, .heads = 2, .kv_heads = 2, .levels = levels, .hybrid = false});
  };
  EXPECT_EQ(parameters(3), 10 * d * d + 14 * d + d + 2 * 3);
  EXPECT_EQ(parameters(1), 4 * d * d + d + 2);
  const Json json = CostToJson(Model(d, 3), 512);
  EXPECT_NEAR(json["parameters"]["ratio"].get<double>(), 2.5, 0.06);
  EXPECT_EQ(json["all_pairs"][2]["part"], "scores");
  EXPECT_EQ(json["all_pairs"][2]["ratio"], 1.3125);
  EXPECT_TRUE(json["all_pairs"][1]["ratio"].is_null());  // nothing to compare with
}

// Shared keys and tied projections save what they save.
TEST(Cost, OtherProjections) {
  ModelConfig shared = Model(64, 3);
  shared.heads = 4;
  shared.kv_heads = 2;
  EXPECT_EQ(CostOf(shared, 64, false).projections,
            112 * (64 * 64 + 64 * 32) + 64 * (64 * 32 + 64 * 64));
  ModelConfig tied = Model(64, 3);
  tied.psd = true;
  EXPECT_EQ(CostOf(tied, 64, false).projections, 112 * 64 * 64 + 2 * 64 * 64 * 64);
  EXPECT_EQ(CostOf(StandardAttention(tied), 64, false).projections, 4 * 64 * 64 * 64);
}

}  // namespace
}  // namespace hkt::analysis
