// Scores of pairs against the T x T matrices that they never form.

#include "hkt/analysis/pair_scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "hkt/analysis/analysis_test_util.h"
#include "hkt/base/error.h"

namespace hkt::analysis {
namespace {

constexpr int64_t kT = 21;

// S^(l) of z or of x repeated over its cells, [H, T, T].
at::Tensor Dense(const Layer& layer, const SequenceLevels& levels, int64_t l, bool undecimated) {
  const at::Tensor cell = at::arange(kT, at::kLong).floor_divide(layer.step(l));
  const auto at = static_cast<size_t>(l);
  const at::Tensor rows = undecimated ? levels.z[at] : levels.x[at].index_select(0, cell);
  return LevelScores(layer, l, rows);
}

at::Tensor Mask(bool causal) {
  const at::Tensor ones = at::ones({kT, kT}, at::kDouble);
  return causal ? ones.tril() : ones;
}

TEST(PairScores, AreTheCentredDenseScores) {
  for (const bool causal : {true, false}) {
    for (const bool bias : {true, false}) {
      Layer layer = RandomLayer({.d = 6, .H = 2, .bias = bias}, 3);
      layer.causal = causal;
      const SequenceLevels levels = Pyramid(layer, Normal({kT, 6}, 4));
      const PairScores scores(layer, levels);
      const PairDraw all = AllPairs(kT, causal);
      const ScoreColumns columns = scores.Uniform(all.i, all.j);
      const at::Tensor mask = Mask(causal), flat = all.i * kT + all.j;
      const auto centred = [&](const at::Tensor& s) {
        return s - (s * mask).sum(2, true) / mask.sum(1).unsqueeze(1);
      };
      for (const bool undecimated : {false, true}) {
        const at::Tensor got = undecimated ? columns.undecimated : columns.decimated;
        for (int64_t l = 0; l < 3; ++l) {
          const at::Tensor S = Dense(layer, levels, l, undecimated);
          const at::Tensor f = centred(S), b = centred(S.transpose(1, 2));
          const at::Tensor s = ((f + b) / 2).flatten(1).index_select(1, flat);
          const at::Tensor a = ((f - b) / 2).flatten(1).index_select(1, flat);
          EXPECT_LE(Distance(got.select(2, l), s), 1e-12);
          EXPECT_LE(Distance(got.select(2, 3 + l), a), 1e-12);
          if (undecimated) continue;
          EXPECT_LE(
              Distance(scores.Raw(all.i, all.j).select(2, l), S.flatten(1).index_select(1, flat)),
              1e-12);
        }
      }
    }
  }
}

TEST(PairScores, WeightedRowsAreCentredWithTheirWeights) {
  const Layer layer = RandomLayer({.d = 6, .H = 2}, 5);
  const SequenceLevels levels = Pyramid(layer, Normal({kT, 6}, 6));
  const PairScores scores(layer, levels);
  const at::Tensor rows = at::tensor({3, 20, 0}, at::kLong);
  const at::Tensor future = at::arange(kT, at::kLong).unsqueeze(0) > rows.unsqueeze(1);
  const at::Tensor p = at::softmax(Normal({3, kT}, 7).masked_fill(future, -INFINITY), 1);
  const at::Tensor j = at::tensor({0, 3, 7, 11, 0, 0}, at::kLong).view({3, 2});
  const ScoreColumns columns = scores.Weighted(1, rows, p, j);
  for (const bool undecimated : {false, true}) {
    const at::Tensor got = undecimated ? columns.undecimated : columns.decimated;
    for (int64_t l = 0; l < 3; ++l) {
      const at::Tensor S = Dense(layer, levels, l, undecimated)[1];
      EXPECT_LE(Distance(scores.Rows(1, l, rows, undecimated), S.index_select(0, rows)), 1e-12);
      for (int64_t r = 0; r < 3; ++r) {
        const int64_t i = rows[r].item<int64_t>();
        for (int64_t m = 0; m < 2; ++m) {
          const int64_t k = j[r][m].item<int64_t>();
          const double f = (S[i][k] - (p[r] * S[i]).sum()).item<double>();
          const double b = (S[k][i] - (p[r] * S.select(1, i)).sum()).item<double>();
          EXPECT_NEAR(got[r * 2 + m][l].item<double>(), (f + b) / 2, 1e-12);
          EXPECT_NEAR(got[r * 2 + m][3 + l].item<double>(), (f - b) / 2, 1e-12);
        }
      }
    }
  }
}

// Every valid pair alike, and no other.
TEST(PairScores, DrawsAreUniform) {
  constexpr int64_t kDraws = 60000;
  for (const bool causal : {true, false}) {
    const PairDraw draw = DrawPairs(5, kDraws, causal, 8);
    std::map<std::pair<int64_t, int64_t>, int64_t> counts;
    for (int64_t n = 0; n < kDraws; ++n)
      ++counts[{draw.i[n].item<int64_t>(), draw.j[n].item<int64_t>()}];
    const size_t pairs = causal ? 15 : 25;
    ASSERT_EQ(counts.size(), pairs);
    const double expected = static_cast<double>(kDraws) / static_cast<double>(pairs);
    for (const auto& [pair, count] : counts) {
      EXPECT_TRUE(!causal || pair.second <= pair.first);
      EXPECT_NEAR(static_cast<double>(count), expected, 5 * std::sqrt(expected));
    }
    EXPECT_EQ(AllPairs(5, causal).i.size(0), static_cast<int64_t>(pairs));
  }
}

TEST(PairScores, RotaryLayersHaveNone) {
  Layer layer = RandomLayer({}, 9);
  const SequenceLevels levels = Pyramid(layer, Normal({5, 6}, 9));
  layer.rotary = true;
  EXPECT_THROW(PairScores(layer, levels), Error);
}

}  // namespace
}  // namespace hkt::analysis
