// The target on a random pyramid: sizes of its terms, identity, order, decay.

#include "hkt/analysis/pyramid_target.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

namespace hkt::analysis {
namespace {

TEST(PyramidTarget, DecaysBelowItsTail) {
  for (const uint64_t seed : {1, 2, 3}) {
    const HeadTruncations head = MeasurePyramidTarget({.seed = seed});
    EXPECT_NEAR(head.decay_rate, 0.6, 1e-9);
    ASSERT_EQ(head.truncations.size(), 5u);
    double last = INFINITY;
    for (const Truncation& t : head.truncations) {
      EXPECT_LE(std::abs(t.terms.gap()), 1e-9);
      EXPECT_LE(t.terms.hierarchical, t.tail_bound * (1 + 1e-9) + 1e-15);
      EXPECT_LE(t.terms.hierarchical, last * (1 + 1e-9));
      last = t.terms.hierarchical;
    }
    EXPECT_LE(last, 1e-15 * head.target);
    const auto json = ToJson(head);
    EXPECT_EQ(json["rows"][2]["hierarchical"], head.truncations[2].terms.hierarchical);
    EXPECT_EQ(MeasurePyramidTarget({.seed = seed}).target, head.target);
  }
}

// The fall that theory.md gives for such pyramids, as a mean over six of them.
TEST(PyramidTarget, FallsAsMeasuredBefore) {
  constexpr std::array<double, 4> kBefore = {0.61, 0.21, 0.070, 0.016};
  std::array<double, 4> mean{};
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const HeadTruncations head = MeasurePyramidTarget({.seed = seed});
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += head.truncations[i].terms.hierarchical / 6;
  }
  for (size_t i = 0; i < mean.size(); ++i)
    EXPECT_NEAR(mean[i], kBefore[i], 0.35 * kBefore[i]) << i + 1 << " levels";
}

TEST(PyramidTarget, OtherShapes) {
  const HeadTruncations head = MeasurePyramidTarget(
      {.levels = 3, .stride = 3, .rho = 0.3, .d = 6, .tokens = 20, .sequences = 10});
  EXPECT_NEAR(head.decay_rate, 0.3, 1e-9);
  EXPECT_LE(std::abs(head.truncations[0].terms.gap()), 1e-9);
}

}  // namespace
}  // namespace hkt::analysis
