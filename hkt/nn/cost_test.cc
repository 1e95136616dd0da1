#include "hkt/nn/cost.h"

#include <gtest/gtest.h>

namespace hkt::nn {
namespace {

// One layer, d = 64, T = 512 and as wide a feed-forward as none: the whole-layer ratios of the
// paper's cost section are of attention alone, so the feed-forward and the head are taken off.
double Attention(int64_t T, int64_t d, int64_t levels, bool hybrid, bool causal) {
  ClassifierOptions o;
  o.attention = {.d_model = d,
                 .heads = 2,
                 .kv_heads = 2,
                 .levels = levels,
                 .hybrid = hybrid,
                 .causal = causal};
  o.layers = 1;
  o.d_ff = 128;
  o.classes = 10;
  return ForwardMultiplyAdds(o, T) - static_cast<double>(2 * T * d * 128 + 10 * d);
}

TEST(CostTest, RatiosToOneLevelOfTheCostSection) {
  const auto ratio = [](int64_t T, int64_t d, bool causal) {
    return Attention(T, d, 3, false, causal) / Attention(T, d, 1, false, causal);
  };
  EXPECT_NEAR(ratio(512, 64, false), 1.239, 5e-4);
  EXPECT_NEAR(ratio(1024, 128, false), 1.238, 5e-4);
  EXPECT_NEAR(ratio(64, 64, false), 1.433, 5e-4);
  EXPECT_NEAR(ratio(512, 64, true), 1.295, 5e-4);
  EXPECT_NEAR(ratio(1024, 128, true), 1.293, 5e-4);
  EXPECT_NEAR(ratio(1024, 64, true), 1.239, 5e-4);
}

// T = 5, s = 2, L = 2: T_1 = 3. d = 4, H = 2, Hkv = 1 (Dkv = 2), k = 3: a convolution is 28 a
// token.
TEST(CostTest, EveryTermByHand) {
  ClassifierOptions o;
  o.attention = {.d_model = 4, .heads = 2, .kv_heads = 1, .levels = 2, .hybrid = true};
  o.layers = 3;
  o.d_ff = 7;
  o.classes = 2;
  const double layer = (5 + 3) * 4 * (4 + 2)  // queries, keys
                       + 5 * 4 * (4 + 2)      // values, output
                       + 3 * 28               // downsampling
                       + 4 * (15 + 6 + 15)    // scores of 15 and 6 pairs, P V
                       + (5 + 3) * 28         // branches
                       + 2 * 5 * 4 * 7;       // feed-forward
  EXPECT_EQ(ForwardMultiplyAdds(o, 5), 3 * layer + 4 * 2);
  EXPECT_EQ(ForwardMultiplyAdds(o, 0), 4 * 2);
}

// The same by hand for the ablations: no pyramid, and all levels at full length.
TEST(CostTest, PickedAndUndecimatedLevels) {
  HktAttentionOptions o{.d_model = 4, .heads = 2, .kv_heads = 1, .levels = 2, .hybrid = true};
  o.downsampling = Downsampling::kPick;
  AttentionCost cost = AttentionMultiplyAdds(o, 5);
  EXPECT_EQ(cost.downsample, 0);
  EXPECT_EQ(cost.scores, 4 * (15 + 6));
  EXPECT_EQ(cost.branches, (5 + 3) * 28);
  o.downsampling = Downsampling::kConvolution;
  o.undecimated = true;
  cost = AttentionMultiplyAdds(o, 5);
  EXPECT_EQ(cost.projections, (5 + 5) * 4 * (4 + 2) + 5 * 4 * (4 + 2));
  EXPECT_EQ(cost.downsample, 5 * 28);
  EXPECT_EQ(cost.scores, 4 * (15 + 15));
  EXPECT_EQ(cost.values, 4 * 15);
  EXPECT_EQ(cost.branches, (5 + 5) * 28);
}

}  // namespace
}  // namespace hkt::nn
