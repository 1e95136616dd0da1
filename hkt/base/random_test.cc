#include "hkt/base/random.h"

#include <gtest/gtest.h>

#include <numeric>

#include "hkt/base/dims.h"

namespace hkt {
namespace {

TEST(RandomTest, StreamsAreFixedForever) {
  // Data sets are generated from these numbers: a change here changes every generated data set.
  Random random({7, 1});
  EXPECT_EQ(random.Bits(), 11898339707028767720u);
  EXPECT_EQ(random.Below(1000), 162u);
  EXPECT_EQ(random.Between(-5, 5), 0);
}

TEST(RandomTest, KeysGiveDifferentStreams) {
  EXPECT_EQ(Random({1, 2}).Bits(), Random({1, 2}).Bits());
  EXPECT_NE(Random({1, 2}).Bits(), Random({2, 1}).Bits());
  EXPECT_NE(Random({1}).Bits(), Random({1, 0}).Bits());
}

TEST(RandomTest, BelowIsUniform) {
  Random random({3});
  constexpr int kDraws = 60000;
  int counts[6] = {};
  for (int i = 0; i < kDraws; ++i) ++counts[random.Below(6)];
  double chi2 = 0;
  for (int count : counts) chi2 += (count - kDraws / 6.0) * (count - kDraws / 6.0) / (kDraws / 6.0);
  EXPECT_LT(chi2, 25.7);  // 5 degrees of freedom, p = 1e-4
}

TEST(RandomTest, ShuffleKeepsTheItems) {
  std::vector<int> items(100);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> shuffled = items;
  Random random({5});
  random.Shuffle(shuffled);
  EXPECT_NE(shuffled, items);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, items);
}

TEST(RandomTest, NormalHasItsMoments) {
  Random random({6});
  constexpr int kDraws = 200000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.Normal();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  // Five standard errors: variances 1, 2 and 96.
  EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(1.0 / kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourth / kDraws, 3, 5 * std::sqrt(96.0 / kDraws));
}

TEST(DimsTest, LevelLengthIsCeiling) {
  for (int64_t s : {2, 3, 5}) {
    for (int64_t T = 0; T < 200; ++T) {
      int64_t power = 1;
      for (int64_t l = 0; l < 4; ++l, power *= s)
        EXPECT_EQ(LevelLength(T, s, l), CeilDiv(T, power));
    }
  }
}

}  // namespace
}  // namespace hkt
