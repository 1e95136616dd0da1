// Kurtosis of scores against its closed forms (docs/theory.md, 3.5g).

#include "hkt/analysis/score_kurtosis.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hkt/analysis/correction.h"
#include "hkt/analysis/sample_test_util.h"

namespace hkt::analysis {
namespace {

constexpr int64_t kRows = 300000, kWidth = 6;

TEST(ScoreKurtosis, KnownValues) {
  EXPECT_DOUBLE_EQ(Kurtosis(at::tensor({-1.0, 1.0, -1.0, 1.0}, at::kDouble)), 1);
  EXPECT_DOUBLE_EQ(Kurtosis(at::tensor({5.0, 5.0, 5.0, 9.0}, at::kDouble)), 7.0 / 3);
  EXPECT_TRUE(std::isnan(Kurtosis(at::tensor({2.0, 2.0}, at::kDouble))));
  // Nor of equal values whose mean is not theirs to the last bit.
  EXPECT_TRUE(std::isnan(Kurtosis(at::full({4096}, 0.1, at::kDouble))));
  EXPECT_TRUE(std::isnan(Kurtosis(at::full({3}, 1e-3 / 3, at::kDouble))));
  Sampler sampler(1);
  EXPECT_NEAR(Kurtosis(sampler.Normal({kRows})), 3, 5 * std::sqrt(24.0 / kRows));
}

TEST(ScoreKurtosis, PooledIsThatOfAllValues) {
  Sampler sampler(2);
  const at::Tensor x = sampler.Exponential({1000}) + 100;
  PooledKurtosis pooled;
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>{0, 1}, {1, 400}, {400, 400}, {400, 1000}})
    pooled.Add(x.slice(0, begin, end));
  EXPECT_TRUE(Near(pooled.value(), Kurtosis(x), 1e-9));
}

// Two Gaussian heads of unlike variance: 3 each, and far more once pooled.
TEST(ScoreKurtosis, PoolingUnlikeVariancesRaisesIt) {
  Sampler sampler(3);
  const at::Tensor a = sampler.Normal({kRows}), b = 4 * sampler.Normal({kRows});
  const double want = 3 * (1 + 256) / 2 / (8.5 * 8.5);  // 3 E v^2 / (E v)^2, v = 1 or 16
  EXPECT_TRUE(Near(Kurtosis(at::cat({a, b})), want, 0.02));
  EXPECT_GT(want, 5);
  EXPECT_NEAR(Kurtosis(b), 3, 0.05);
}

TEST(ScoreKurtosis, IndependentEllipticalTokens) {
  Sampler sampler(4);
  const at::Tensor identity = at::eye(kWidth, at::kDouble);
  for (const int64_t rank : {1, 3, 6}) {
    const at::Tensor M = at::mm(sampler.Normal({kWidth, rank}), sampler.Normal({rank, kWidth}));
    const double effective = EffectiveRank(M, identity, identity);
    EXPECT_GE(effective, 1 - 1e-9);
    EXPECT_LE(effective, static_cast<double>(rank) + 1e-9);
    const double variance = M.square().sum().item<double>();
    for (const double gamma : {0.0, 1.0}) {
      const auto tokens = [&] {
        return gamma == 0 ? sampler.Normal({kRows, kWidth}) : sampler.Mixture(kRows, kWidth);
      };
      const at::Tensor fourth = Scores(tokens(), M, tokens()).pow(4) / (variance * variance);
      EXPECT_TRUE(Within(fourth, EllipticalScoreKurtosis(gamma, gamma, effective))) << rank;
    }
  }
  // Covariances enter through A = Sigma_x^1/2 M Sigma_y^1/2.
  const at::Tensor mix = sampler.Normal({kWidth, kWidth}), sigma = at::mm(mix.t(), mix);
  const at::Tensor M = sampler.Normal({kWidth, kWidth});
  const double variance = IndependentSecondMoment(M, sigma, sigma);
  const at::Tensor x = at::mm(sampler.Normal({kRows, kWidth}), mix);
  const at::Tensor y = at::mm(sampler.Normal({kRows, kWidth}), mix);
  EXPECT_TRUE(Within(Scores(x, M, y).pow(4) / (variance * variance),
                     EllipticalScoreKurtosis(0, 0, EffectiveRank(M, sigma, sigma))));
  // A token and itself are not independent: the formula does not hold of i = j.
  EXPECT_FALSE(Within(Scores(x, M, x).pow(4) / (variance * variance),
                      EllipticalScoreKurtosis(0, 0, EffectiveRank(M, sigma, sigma))));
}

// 3 to 9 for Gaussian tokens; 33 needs (1 + gamma)^2 (1 + 2/r_eff) = 11.
TEST(ScoreKurtosis, WhatThePublishedValueNeeds) {
  EXPECT_DOUBLE_EQ(EllipticalScoreKurtosis(0, 0, 1), 9);
  EXPECT_NEAR(EllipticalScoreKurtosis(0, 0, 1e12), 3, 1e-9);
  const double gamma = std::sqrt(11 / (1 + 2.0 / 16)) - 1;
  EXPECT_NEAR(gamma, 2.1, 0.05);
  EXPECT_DOUBLE_EQ(EllipticalScoreKurtosis(gamma, gamma, 16), 33);
}

// Over Gaussian W_Q, W_K the score of fixed tokens x, y is |x||y| times a product of d_h pairs.
TEST(ScoreKurtosis, RandomWeightsOfFiniteWidth) {
  Sampler sampler(5);
  for (const int64_t width : {1, 4, 16}) {
    const at::Tensor q = sampler.Normal({kRows / width, width}),
                     k = sampler.Normal({kRows / width, width});
    const at::Tensor scores = (q * k).sum(1) / std::sqrt(static_cast<double>(width));
    EXPECT_TRUE(Within(scores.square(), 1));
    EXPECT_TRUE(Within(scores.pow(4), RandomWeightsScoreKurtosis(width)));
  }
}

}  // namespace
}  // namespace hkt::analysis
