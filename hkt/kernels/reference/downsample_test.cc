#include "hkt/kernels/reference/downsample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hkt/base/random.h"
#include "hkt/testing/compare.h"

namespace hkt::kernels::reference {
namespace {

Vector Uniform(Random& random, int64_t n) {
  Vector values(n);
  for (double& value : values) value = 2 * random.Uniform() - 1;
  return values;
}

Downsample Case(int64_t B, int64_t T, int64_t d, int64_t k, int64_t stride) {
  Random random({7, static_cast<uint64_t>(T), static_cast<uint64_t>(k)});
  Downsample p;
  p.B = B;
  p.T = T;
  p.d = d;
  p.k = k;
  p.stride = stride;
  p.x = Uniform(random, B * T * d);
  p.depthwise_weight = Uniform(random, d * k);
  p.pointwise_weight = Uniform(random, d * d);
  for (Vector* vector : {&p.depthwise_bias, &p.pointwise_bias, &p.norm_weight, &p.norm_bias})
    *vector = Uniform(random, d);
  return p;
}

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The gradient of sum(out * weights) by central differences. With steps of 1e-4 they are off by the
// third derivative times 1e-8 / 6, and by 1e-16 / 1e-4 of rounding; the functions here have third
// derivatives of at most a few hundred (LayerNorm of few channels), so 1e-6 is safe, and far below
// a wrong term.
constexpr double kStep = 1e-4, kBound = 1e-6;

void ExpectJacobian(Downsample p) {
  Random random({11});
  const Vector d_out = Uniform(random, static_cast<int64_t>(DownsampleForward(p).size()));
  const DownsampleGradients gradients = DownsampleBackward(p, d_out);
  const auto check = [&](const char* name, Vector Downsample::*input, const Vector& got) {
    Vector want;
    for (double& value : p.*input) {
      const double kept = value;
      value = kept + kStep;
      const double above = Dot(DownsampleForward(p), d_out);
      value = kept - kStep;
      const double below = Dot(DownsampleForward(p), d_out);
      value = kept;
      want.push_back((above - below) / (2 * kStep));
    }
    const testing::Comparison result = testing::Compare(got, want, kBound);
    EXPECT_TRUE(result.ok) << name << ", T = " << p.T << ", k = " << p.k << ", s = " << p.stride
                           << ": " << result.message;
  };
  check("x", &Downsample::x, gradients.x);
  check("depthwise_weight", &Downsample::depthwise_weight, gradients.depthwise_weight);
  check("depthwise_bias", &Downsample::depthwise_bias, gradients.depthwise_bias);
  check("pointwise_weight", &Downsample::pointwise_weight, gradients.pointwise_weight);
  check("pointwise_bias", &Downsample::pointwise_bias, gradients.pointwise_bias);
  check("norm_weight", &Downsample::norm_weight, gradients.norm_weight);
  check("norm_bias", &Downsample::norm_bias, gradients.norm_bias);
}

TEST(ReferenceDownsample, GradientsEqualDifferences) {
  ExpectJacobian(Case(2, 7, 5, 3, 2));
  ExpectJacobian(Case(1, 6, 4, 1, 1));
  ExpectJacobian(Case(1, 9, 3, 2, 4));  // tokens that no output reads
  ExpectJacobian(Case(1, 5, 4, 7, 1));  // a kernel wider than the sequence
  ExpectJacobian(Case(3, 1, 4, 3, 2));
}

TEST(ReferenceDownsample, TwoChannelsByHand) {
  // Identity as pointwise map: y = (x_{t-1}, x_t) tapped by hand. LayerNorm of two
  // channels with eps = 0 is (+1, -1) or (-1, +1).
  Downsample p;
  p.B = 1;
  p.T = 3;
  p.d = p.k = p.stride = 2;
  p.eps = 0;
  p.x = {1, 0, /**/ 2, 9, /**/ 4, 0};
  p.depthwise_weight = {10, 1, /**/ 1, 0};  // channel 0: 10 x_{t-1} + x_t; channel 1: x_{t-1}
  p.depthwise_bias = {0, 5};
  p.pointwise_weight = {1, 0, 0, 1};
  p.pointwise_bias = {0, 0};
  p.norm_weight = {2, 3};
  p.norm_bias = {0, 0.5};
  // tau = 0: y = (1, 5); tau = 1 (token 2, before it token 1): y = (24, 14).
  const Vector want = {Gelu(-2), Gelu(3.5), Gelu(2), Gelu(-2.5)};
  const testing::Comparison result = testing::Compare(DownsampleForward(p), want, 1e-15);
  EXPECT_TRUE(result.ok) << result.message;
}

TEST(ReferenceDownsample, GeluByTable) {
  // Phi(1) and phi(1) from tables of the normal distribution.
  EXPECT_NEAR(Gelu(1), 0.84134474606854293, 1e-15);
  EXPECT_NEAR(Gelu(-1), -0.15865525393145707, 1e-15);
  EXPECT_NEAR(GeluDerivative(1), 0.84134474606854293 + 0.24197072451914337, 1e-15);
  EXPECT_EQ(Gelu(0), 0);
  EXPECT_EQ(GeluDerivative(0), 0.5);
}

TEST(ReferenceDownsample, Empty) {
  EXPECT_TRUE(DownsampleForward(Case(0, 5, 3, 3, 2)).empty());
  EXPECT_TRUE(DownsampleForward(Case(2, 0, 3, 3, 2)).empty());
  EXPECT_EQ(DownsampleBackward(Case(2, 0, 3, 3, 2), {}).pointwise_weight, Vector(9, 0));
}

}  // namespace
}  // namespace hkt::kernels::reference
