// From scores to attention (docs/theory.md, 3.7).

#include "hkt/analysis/softmax_error.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hkt/analysis/sample_test_util.h"

namespace hkt::analysis {
namespace {

// Of rows [R, 7]; a value a row.
at::Tensor Kl(const at::Tensor& p, const at::Tensor& q) { return (p * (p / q).log()).sum(1); }

at::Tensor Mean(const at::Tensor& p, const at::Tensor& D) { return (p * D).sum(1, true); }

at::Tensor Variance(const at::Tensor& p, const at::Tensor& D) {
  return (p * (D - Mean(p, D)).square()).sum(1);
}

double Worst(const at::Tensor& excess) { return excess.max().item<double>(); }

at::Tensor Number(double x) { return at::scalar_tensor(x, at::kDouble); }

TEST(SoftmaxError, BoundsHold) {
  Sampler sampler(1);
  for (int i = 0; i < 5; ++i) {
    const at::Tensor a = 3 * sampler.Normal({400, 7}), b = a - sampler.Normal({400, 7}) * i;
    const at::Tensor p = at::softmax(a, 1), q = at::softmax(b, 1), D = a - b;
    const at::Tensor range = D.amax(1) - D.amin(1), kl = Kl(p, q);
    EXPECT_LE(Worst(kl - KlBoundOfRange(range)), 1e-14);
    EXPECT_LE(Worst(kl - KlBoundOfVariance(Variance(p, D), range)), 1e-14);
    EXPECT_LE(Worst((p - q).abs().sum(1) - L1BoundOfRange(range)), 1e-14);
    // KL = log E_p exp(-(D - E_p D)), the identity that the bounds come from.
    const at::Tensor moment = (p * (-(D - Mean(p, D))).exp()).sum(1);
    EXPECT_LE(Worst((kl - moment.log()).abs()), 1e-9);
  }
}

// Half of a bound is no bound: the tightest of many rows comes near.
TEST(SoftmaxError, BoundsAreSharp) {
  Sampler sampler(3);
  const at::Tensor a = sampler.Normal({4000, 2}), D = 0.01 * sampler.Normal({4000, 2});
  const at::Tensor p = at::softmax(a, 1), q = at::softmax(a - D, 1), range = D.amax(1) - D.amin(1);
  EXPECT_GT(Worst(Kl(p, q) / KlBoundOfRange(range)), 0.99);
  EXPECT_GT(Worst(Kl(p, q) / KlBoundOfVariance(Variance(p, D), range)), 0.99);
  EXPECT_GT(Worst((p - q).abs().sum(1) / L1BoundOfRange(range)), 0.99);
}

TEST(SoftmaxError, HalfTheVarianceToLeadingOrderOnly) {
  Sampler sampler(2);
  const at::Tensor a = sampler.Normal({1, 7}), D = sampler.Normal({1, 7}), p = at::softmax(a, 1);
  const auto relative = [&](double size) {
    return (Kl(p, at::softmax(a - size * D, 1)) / (Variance(p, size * D) / 2) - 1).item<double>();
  };
  EXPECT_LE(std::abs(relative(1e-3)), 2e-3);
  EXPECT_GT(std::abs(relative(3)), 0.1);  // far from it for large errors
}

TEST(SoftmaxError, VarianceBoundIsSmoothAtZeroAndFinite) {
  const auto bound = [](double variance, double range) {
    return KlBoundOfVariance(Number(variance), Number(range)).item<double>();
  };
  EXPECT_DOUBLE_EQ(bound(2, 0), 1);
  EXPECT_NEAR(bound(2, 0.99e-4), bound(2, 1.01e-4), 1e-6);
  EXPECT_NEAR(bound(1, 1), std::exp(1) - 2, 1e-15);
  EXPECT_GT(bound(1, 1e4), 1e4 * 1e4 / 8);  // the larger of the two by far
  EXPECT_TRUE(std::isfinite(bound(1, 1e4)));
}

}  // namespace
}  // namespace hkt::analysis
