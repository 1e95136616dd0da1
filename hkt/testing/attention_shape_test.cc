#include "hkt/testing/attention_shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace hkt::testing {
namespace {

using ::testing::ElementsAre;

TEST(AttentionShapeTest, TailsLieAroundEveryEdge) {
  EXPECT_THAT(TailLengths(5, {96}), ElementsAre(1, 2, 3, 4, 5, 6, 95, 96, 97, 191, 192, 193));
  EXPECT_THAT(TailLengths(2, {8}), ElementsAre(1, 2, 3, 7, 8, 9, 15, 16, 17, 97, 193));
}

// What the random cases are for: they must meet grouped heads, Dv != D, many levels, s > T.
TEST(AttentionShapeTest, RandomShapesAreValidAndMeetEveryKind) {
  Random random({1});
  std::set<bool> grouped, other_width, deep, far, one_token, large;
  for (int i = 0; i < 500; ++i) {
    const AttentionShape x = RandomAttentionShape(random, 130);
    ASSERT_EQ(x.H % x.Hkv, 0) << x.ToString();
    ASSERT_TRUE(x.T >= 1 && x.T <= 130 && x.D >= 1 && x.Dv >= 1 && x.L >= 1 && x.s >= 2)
        << x.ToString();
    grouped.insert(x.H > x.Hkv);
    other_width.insert(x.D != x.Dv);
    deep.insert(x.L > 4);
    far.insert(x.s > x.T);
    one_token.insert(x.T == 1);
    large.insert(x.T > 100);
  }
  for (const auto& kinds : {grouped, other_width, deep, far, one_token, large})
    EXPECT_EQ(kinds.size(), 2u);
}

TEST(AttentionShapeTest, SaysItsSizes) {
  const AttentionShape shape{.B = 2, .H = 4, .Hkv = 2, .T = 9, .D = 3, .Dv = 5, .L = 3, .s = 7};
  EXPECT_EQ(shape.ToString(), "B=2 H=4 Hkv=2 T=9 D=3 Dv=5 L=3 s=7");
}

}  // namespace
}  // namespace hkt::testing
