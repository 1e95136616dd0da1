// The sums of the mixture against dense formulas and closed forms.

#include "hkt/analysis/mixture.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "hkt/analysis/analysis_test_util.h"

namespace hkt::analysis {
namespace {

double Item(const at::Tensor& x) { return x.item<double>(); }

TEST(Mixture, EqualsTheDenseFormulas) {
  constexpr int64_t kT = 23;
  for (const bool causal : {true, false}) {
    Layer layer = RandomLayer({.d = 6, .H = 2, .L = 3}, 1);
    layer.causal = causal;
    layer.score_gain = 1.5;
    const SequenceLevels levels = Pyramid(layer, Normal({kT, 6}, 2));
    const at::Tensor tokens = at::arange(kT, at::kLong);
    const at::Tensor hidden = causal ? tokens.unsqueeze(0) > tokens.unsqueeze(1)
                                     : at::zeros_like(tokens).unsqueeze(0) > tokens.unsqueeze(1);
    const at::Tensor valid = hidden.logical_not().expand({kT, kT});
    const at::Tensor distance = (tokens.unsqueeze(0) - tokens.unsqueeze(1)).abs().to(at::kDouble);
    const auto attention = [&](const at::Tensor& s) {
      return at::softmax(s.masked_fill(hidden, -INFINITY), 1);
    };
    const auto centred = [&](const at::Tensor& s) {
      const at::Tensor sum = at::where(valid, s, 0.0).sum(1, true);
      return at::where(valid, s - sum / valid.to(at::kDouble).sum(1, true), 0.0);
    };
    // The same whatever the chunk.
    for (const int64_t chunk : {1, 7, 64}) {
      const MixtureSums sums = MixtureOf(layer, levels.x, chunk);
      for (int64_t h = 0; h < 2; ++h) {
        const at::Tensor fused = FusedScores(layer, levels.x, 0, kT)[h], p = attention(fused);
        EXPECT_NEAR(Item(sums.variance[h]), Item(centred(fused).square().sum()), 1e-10);
        EXPECT_NEAR(Item(sums.distance[h]), Item((p * distance).sum()), 1e-10);
        const at::Tensor logs = at::where(p > 0, p, 1.0).log();
        EXPECT_NEAR(Item(sums.entropy[h]), -Item((p * logs).sum()), 1e-10);
        double shares = 0;
        for (int64_t l = 0; l < 3; ++l) {
          const at::Tensor up = CellMatrix(kT, layer.step(l));
          const at::Tensor& x = levels.x[static_cast<size_t>(l)];
          const at::Tensor alone =
              at::matmul(at::matmul(up, LevelScores(layer, l, x)[h]), up.t()) * 1.5;
          const at::Tensor part = centred(alone) * Item(layer.weights[h][l]);
          EXPECT_NEAR(Item(sums.level_distance[h][l]), Item((attention(alone) * distance).sum()),
                      1e-10);
          EXPECT_NEAR(Item(sums.level_variance[h][l]), Item(part.square().sum()), 1e-10);
          EXPECT_NEAR(Item(sums.covariance[h][l]), Item((part * centred(fused)).sum()), 1e-10);
          shares += Item(sums.covariance[h][l]) / Item(sums.variance[h]);
        }
        EXPECT_NEAR(shares, 1, 1e-12);
      }
      EXPECT_EQ(sums.rows, kT);
      EXPECT_EQ(sums.pairs, causal ? kT * (kT + 1) / 2 : kT * kT);
    }
  }
}

// Equal scores: the attention is uniform, row i has entropy log(i + 1) and distance i / 2.
TEST(Mixture, UniformAttentionHasTheUniformFigures) {
  Layer layer = RandomLayer({.d = 6, .H = 1, .L = 2}, 3);
  for (LevelWeights& level : layer.levels) level.query = at::zeros_like(level.query);
  const MixtureSums sums = MixtureOf(layer, Pyramid(layer, Normal({40, 6}, 4)).x);
  double entropy = 0;
  for (int i = 0; i < 40; ++i) entropy += std::log(i + 1.0);
  EXPECT_NEAR(sums.uniform_entropy, entropy, 1e-11);
  EXPECT_NEAR(sums.uniform_distance, 40 * 39 / 4.0, 1e-11);
  EXPECT_NEAR(Item(sums.entropy[0]), sums.uniform_entropy, 1e-11);
  EXPECT_NEAR(Item(sums.distance[0]), sums.uniform_distance, 1e-11);
  EXPECT_EQ(Item(sums.variance[0]), 0);
}

TEST(Mixture, SumsAddUp) {
  const Layer layer = RandomLayer({.d = 6, .H = 2, .L = 2}, 5);
  const MixtureSums a = MixtureOf(layer, Pyramid(layer, Normal({9, 6}, 6)).x),
                    b = MixtureOf(layer, Pyramid(layer, Normal({20, 6}, 7)).x);
  MixtureSums sum;
  sum.Add(a);
  sum.Add(b);
  EXPECT_EQ(sum.rows, 29);
  EXPECT_LE(Distance(sum.entropy, a.entropy + b.entropy), 0);
  EXPECT_LE(Distance(sum.covariance, a.covariance + b.covariance), 0);
}

}  // namespace
}  // namespace hkt::analysis
