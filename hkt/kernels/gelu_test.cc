// The vectorised GELU and its derivative on every SIMD target, against erfc and exp in double.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hkt/kernels/gelu_test.cc"

// clang-format off
#include "hkt/kernels/targets.h"  // before any header of Highway: it says which targets to compile
// clang-format on
#include <gtest/gtest.h>
#include <hwy/foreach_target.h>

#include <cmath>
#include <limits>
#include <vector>

#include "hkt/kernels/gelu-inl.h"
#include "hkt/kernels/reference/downsample.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// n a multiple of 16, the lanes of the widest target.
void GeluOfAll(const float* h, int64_t n, float* gelu, float* derivative) {
  const DF d;
  for (int64_t i = 0; i < n; i += kLanes) {
    const VF v = hn::LoadU(d, h + i);
    hn::StoreU(Gelu(v), d, gelu + i);
    hn::StoreU(GeluDerivative(v), d, derivative + i);
  }
}

double Roundings() { return kNormalRoundings; }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hkt::kernels {
namespace {

HWY_EXPORT(GeluOfAll);
HWY_EXPORT(Roundings);

constexpr double kUnit = 0x1p-24;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Values {
  std::vector<float> gelu, derivative;
};

Values Of(std::vector<float> h) {
  const size_t n = h.size();
  h.resize((n + 15) / 16 * 16);
  Values values{std::vector<float>(h.size()), std::vector<float>(h.size())};
  HWY_DYNAMIC_DISPATCH(GeluOfAll)
  (h.data(), static_cast<int64_t>(h.size()), values.gelu.data(), values.derivative.data());
  values.gelu.resize(n);
  values.derivative.resize(n);
  return values;
}

class Gelu : public ::testing::Test {
 protected:
  ~Gelu() override { SetTarget(""); }
};

TEST_F(Gelu, FewRoundingsEverywhere) {
  // Steps of 2^-12 over all that matters, and every power of two with its neighbours.
  std::vector<float> h;
  for (int i = -16 << 12; i <= 16 << 12; ++i) h.push_back(static_cast<float>(i) * 0x1p-12F);
  for (int e = -149; e < 128; ++e) {
    for (const float sign : {1.0F, -1.0F}) {
      const float power = sign * std::ldexp(1.0F, e);
      for (const float value : {power, std::nextafter(power, 0.0F), power * 1.37F})
        h.push_back(value);
    }
  }
  for (const std::string& target : UsableTargets()) {
    SetTarget(target);
    const double roundings = HWY_DYNAMIC_DISPATCH(Roundings)();
    const Values got = Of(h);
    double worst_gelu = 0, worst_derivative = 0;
    for (size_t i = 0; i < h.size(); ++i) {
      const double x = h[i], tail = std::erfc(std::abs(x) / std::sqrt(2.0)) / 2;
      const double cdf = x < 0 ? tail : 1 - tail;
      const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
      // What gelu-inl.h promises of the tail, a rounding of 1 - tail, and underflow, where e^(-x^2
      // / 2) < 2^-126 is 0 and products may be subnormal.
      const double relative = (roundings + 1.5 * x * x) * kUnit;
      const double of_cdf = tail * relative + cdf * kUnit + 0x1p-126;
      const double of_gelu = std::abs(x) * (of_cdf + cdf * kUnit) + 0x1p-149;
      // exp2 3 roundings, the constant and the product with it 2; then those of x phi + Phi.
      const double of_density = density * (5 + 1.5 * x * x) * kUnit + 0x1p-126;
      const double of_derivative =
          of_cdf + std::abs(x) * (of_density + 2 * density * kUnit) + cdf * kUnit;
      const double gelu_error = std::abs(got.gelu[i] - reference::Gelu(x));
      const double derivative_error = std::abs(got.derivative[i] - reference::GeluDerivative(x));
      ASSERT_TRUE(gelu_error <= of_gelu)
          << target << ": GELU(" << x << ") = " << got.gelu[i] << ", want " << reference::Gelu(x);
      ASSERT_TRUE(derivative_error <= of_derivative)
          << target << ": GELU'(" << x << ") = " << got.derivative[i] << ", want "
          << reference::GeluDerivative(x);
      worst_gelu = std::max(worst_gelu, gelu_error / std::max(std::abs(reference::Gelu(x)), 1e-3));
      worst_derivative = std::max(worst_derivative, derivative_error);
    }
    std::printf("%-7s GELU: %.1f u relative to max(|GELU|, 0.001); derivative: %.1f u\n",
                target.c_str(), worst_gelu / kUnit, worst_derivative / kUnit);
    // The figures of gelu-inl.h.
    EXPECT_LE(worst_gelu, 11 * kUnit) << target;
    EXPECT_LE(worst_derivative, 3 * kUnit) << target;
  }
}

TEST_F(Gelu, NanInfinityZero) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::string& target : UsableTargets()) {
    SetTarget(target);
    const Values got = Of({kNan, kInfinity, 0.0F, -0.0F, 1e38F, -1e38F});
    EXPECT_TRUE(std::isnan(got.gelu[0]) && std::isnan(got.derivative[0])) << target;
    EXPECT_EQ(got.gelu[1], kInfinity) << target;
    EXPECT_EQ(got.gelu[2], 0) << target;
    EXPECT_TRUE(got.gelu[3] == 0 && std::signbit(got.gelu[3])) << target;
    EXPECT_EQ(got.gelu[4], 1e38F) << target;
    EXPECT_EQ(got.gelu[5], 0) << target;
    EXPECT_EQ(got.derivative[4], 1) << target;
    EXPECT_EQ(got.derivative[5], 0) << target;
  }
}

}  // namespace
}  // namespace hkt::kernels
#endif
