// What keeping the first token of a cell costs (docs/theory.md, 3.3).

#include "hkt/analysis/quantisation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hkt/analysis/sample_test_util.h"

namespace hkt::analysis {
namespace {

constexpr int64_t kTokens = 64, kStep = 4, kWidth = 3;
constexpr double kPhi = 0.8;

// n stationary autoregressive fields [n, kTokens, d] of unit variance.
at::Tensor Fields(Sampler& sampler, int64_t n) {
  std::vector<at::Tensor> rows = {sampler.Normal({n, kWidth})};
  for (int64_t i = 1; i < kTokens; ++i)
    rows.push_back(kPhi * rows.back() + std::sqrt(1 - kPhi * kPhi) * sampler.Normal({n, kWidth}));
  return at::stack(rows, 1);
}

const double kPhibar = (1 + kPhi + kPhi * kPhi + kPhi * kPhi * kPhi) / 4;

TEST(Quantisation, FirstOfCellRepeats) {
  const at::Tensor z = at::zeros({7, 1}, at::kDouble) + 0.0;
  for (int64_t i = 0; i < 7; ++i) z[i] = static_cast<double>(i);
  const at::Tensor first = FirstOfCell(z, 3).squeeze(1);
  for (int64_t i = 0; i < 7; ++i)
    EXPECT_EQ(first[i].item<double>(), static_cast<double>(i / 3 * 3));
  EXPECT_TRUE(FirstOfCell(z, 1).equal(z));
}

// phibar_l is the mean autocorrelation over the lags of a cell.
TEST(Quantisation, MeanAutocorrelationOfAField) {
  Sampler sampler(1);
  const at::Tensor z = Fields(sampler, 5000).flatten(0, 1);  // whole cells: they may stand in a row
  EXPECT_TRUE(Near(MeanAutocorrelation(SumCellMoments(z, kStep, z.mean(0))), kPhibar, 0.01));
  // White noise keeps what lies on the grid only: 1 lag of 4.
  const at::Tensor noise = sampler.Normal({100000, kWidth});
  EXPECT_NEAR(MeanAutocorrelation(SumCellMoments(noise, 4, noise.mean(0))), 0.25, 0.01);
}

// One pair of tokens of each of n sequences: undecimated and decimated scores.
struct Pairs {
  Pairs(const at::Tensor& a, const at::Tensor& b, const at::Tensor& M, Sampler& sampler) {
    const int64_t n = a.size(0);
    const at::Tensor row = at::arange(n, at::kLong);
    const auto token = [&](const at::Tensor& fields, const at::Tensor& at) {
      return fields.flatten(0, 1).index_select(0, row * kTokens + at);
    };
    const at::Tensor i = (sampler.Uniform({n}) * kTokens).to(at::kLong);
    const at::Tensor j = (sampler.Uniform({n}) * kTokens).to(at::kLong);
    const auto first = [](const at::Tensor& at) { return at.floor_divide(kStep) * kStep; };
    full = Scores(token(a, i), M, token(b, j));
    decimated = Scores(token(a, first(i)), M, token(b, first(j)));
  }
  at::Tensor full, decimated;
};

// Independent tokens i, j (of two sequences): the closed form; the best rescaling of the decimated
// score leaves 1 - phibar^4.
TEST(Quantisation, LossOfIndependentTokens) {
  Sampler sampler(2);
  const at::Tensor M = sampler.Normal({kWidth, kWidth});
  const double norm = M.square().sum().item<double>();  // E(St)^2: covariances are I
  const Pairs pairs(Fields(sampler, 50000), Fields(sampler, 50000), M, sampler);
  EXPECT_TRUE(Within((pairs.full - pairs.decimated).square(), norm * RelativeLoss(kPhibar)));
  const at::Tensor& f = pairs.decimated;
  const double best = (pairs.full * f).sum().item<double>() / f.square().sum().item<double>();
  EXPECT_TRUE(Near(best, kPhibar * kPhibar, 0.03));
  EXPECT_TRUE(Within((pairs.full - kPhibar * kPhibar * f).square(), norm * RescaledLoss(kPhibar)));
  // The form with moments, which need be neither stationary nor alike on both sides.
  const at::Tensor identity = at::eye(kWidth, at::kDouble);
  const CellMoments moments = {identity, identity, kPhibar * identity};
  EXPECT_TRUE(Near(IndependentLoss(M, moments, moments), norm * RelativeLoss(kPhibar), 1e-12));
  const CellMoments left = {4 * identity, identity, 2 * kPhibar * identity};
  EXPECT_TRUE(Near(IndependentLoss(M, left, moments), norm * (5 - 4 * kPhibar * kPhibar), 1e-12));
}

// Tokens of one sequence depend on each other: there the closed form does not hold.
TEST(Quantisation, DependentTokensBreakTheClosedForm) {
  Sampler sampler(3);
  const at::Tensor M = at::eye(kWidth, at::kDouble), z = Fields(sampler, 50000);
  const Pairs pairs(z, z, M, sampler);
  EXPECT_FALSE(Within((pairs.full - pairs.decimated).square(), kWidth * RelativeLoss(kPhibar)));
}

TEST(Quantisation, FirstSampleCostsExactlyTheSplit) {
  Sampler sampler(4);
  for (const int64_t T : {1, 4, 7, 4000}) {
    const FirstSampleCost cost = MeasureFirstSample(sampler.Normal({T, kWidth}), kStep);
    EXPECT_NEAR(cost.first, cost.mean + cost.offset, 1e-12 * cost.first);
  }
  // White noise: the first sample costs twice the mean; a smooth field less than that.
  const FirstSampleCost noise = MeasureFirstSample(sampler.Normal({40000, kWidth}), kStep);
  EXPECT_TRUE(Near(noise.first / noise.mean, 2, 0.03));
}

}  // namespace
}  // namespace hkt::analysis
