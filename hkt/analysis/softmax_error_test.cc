// From scores to attention (docs/theory.md, 3.7).

#include "hkt/analysis/softmax_error.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hkt/analysis/sample_test_util.h"

namespace hkt::analysis {
namespace {

double Kl(const at::Tensor& p, const at::Tensor& q) {
  return (p * (p / q).log()).sum().item<double>();
}

double Variance(const at::Tensor& p, const at::Tensor& D) {
  const double mean = at::dot(p, D).item<double>();
  return at::dot(p, (D - mean).square()).item<double>();
}

TEST(SoftmaxError, BoundsHold) {
  Sampler sampler(1);
  for (int i = 0; i < 2000; ++i) {
    const at::Tensor a = 3 * sampler.Normal({7}), b = a - sampler.Normal({7}) * (i % 5);
    const at::Tensor p = at::softmax(a, 0), q = at::softmax(b, 0), D = a - b;
    const double range = (D.max() - D.min()).item<double>(), kl = Kl(p, q);
    EXPECT_LE(kl, KlBoundOfRange(range) + 1e-14);
    EXPECT_LE(kl, KlBoundOfVariance(Variance(p, D), range) + 1e-14);
    EXPECT_LE((p - q).abs().sum().item<double>(), L1BoundOfRange(range) + 1e-14);
    // KL = log E_p exp(-(D - E_p D)), the identity that the bounds come from.
    const double moment = at::dot(p, (-(D - at::dot(p, D))).exp()).item<double>();
    EXPECT_NEAR(kl, std::log(moment), 1e-9);
  }
}

TEST(SoftmaxError, HalfTheVarianceToLeadingOrderOnly) {
  Sampler sampler(2);
  const at::Tensor a = sampler.Normal({7}), D = sampler.Normal({7}), p = at::softmax(a, 0);
  const auto relative = [&](double size) {
    return Kl(p, at::softmax(a - size * D, 0)) / (Variance(p, size * D) / 2) - 1;
  };
  EXPECT_LE(std::abs(relative(1e-3)), 2e-3);
  EXPECT_GT(std::abs(relative(3)), 0.1);  // far from it for large errors
}

TEST(SoftmaxError, VarianceBoundIsSmoothAtZero) {
  EXPECT_DOUBLE_EQ(KlBoundOfVariance(2, 0), 1);
  EXPECT_NEAR(KlBoundOfVariance(2, 0.99e-4), KlBoundOfVariance(2, 1.01e-4), 1e-6);
  EXPECT_NEAR(KlBoundOfVariance(1, 1), std::exp(1) - 2, 1e-15);
}

}  // namespace
}  // namespace hkt::analysis
