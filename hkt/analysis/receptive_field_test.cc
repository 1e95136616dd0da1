// theory.md 6.1 to 6.4: what a position of a level sees, how far wrong pyramids leak, and where a
// test of causality is blind. That the layer itself is causal to the bit: hkt/nn/causality_test.cc.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "hkt/analysis/analysis_test_util.h"

namespace hkt::analysis {
namespace {

// x [T, d] to the levels; the window of position tau ends at tau s + shift, or, pooling, is the
// mean of its whole cell. shift = 0 is ours.
struct Variant {
  int64_t shift = 0;
  bool pool = false;
};

std::vector<at::Tensor> Levels(const Layer& layer, const at::Tensor& x, const Variant& variant) {
  const int64_t s = layer.stride;
  std::vector<at::Tensor> levels = {x};
  for (int64_t l = 1; l < layer.L; ++l) {
    const LevelWeights& w = layer.levels[static_cast<size_t>(l)];
    const at::Tensor& from = levels.back();
    const int64_t T = from.size(0), k = w.depthwise_weight.size(1), Tl = (T + s - 1) / s;
    std::vector<at::Tensor> rows;
    for (int64_t tau = 0; tau < Tl; ++tau) {
      at::Tensor y = w.depthwise_bias;
      if (variant.pool) {
        y = from.slice(0, tau * s, std::min(T, (tau + 1) * s)).mean(0);
      } else {
        for (int64_t a = 0; a < k; ++a) {
          const int64_t j = tau * s - a + variant.shift;
          if (j >= 0 && j < T) y = y + w.depthwise_weight.select(1, k - 1 - a) * from[j];
        }
      }
      rows.push_back(y);
    }
    at::Tensor y = at::linear(at::stack(rows), w.pointwise_weight, w.pointwise_bias);
    levels.push_back(at::gelu(at::layer_norm(y, {layer.d}, w.norm_weight, w.norm_bias)));
  }
  return levels;
}

// Causal attention of one head with values x.
at::Tensor Head(const Layer& layer, const at::Tensor& x, const Variant& variant) {
  const int64_t T = x.size(0);
  const at::Tensor tokens = at::arange(T, at::kLong);
  const at::Tensor scores = FusedScores(layer, Levels(layer, x, variant), 0, T)[0].masked_fill(
      tokens.unsqueeze(0) > tokens.unsqueeze(1), -INFINITY);
  return at::matmul(at::softmax(scores, 1), x);
}

// Largest t0 - i over outputs i < t0 that change by more than `bound` when x[t0:] is replaced;
// 0: causal.
int64_t Leak(const Layer& layer, int64_t T, const Variant& variant, double bound = 0) {
  const at::Tensor x = Normal({T, layer.d}, 6), other = Normal({T, layer.d}, 7);
  const at::Tensor base = Head(layer, x, variant);
  int64_t worst = 0;
  for (int64_t t0 = 1; t0 < T; ++t0) {
    at::Tensor changed = x.clone();
    changed.slice(0, t0).copy_(other.slice(0, t0));
    const at::Tensor out = Head(layer, changed, variant);
    for (int64_t i = 0; i < t0; ++i) {
      if (!((out[i] - base[i]).abs().max().item<double>() <= bound)) {
        worst = std::max(worst, t0 - i);
        break;
      }
    }
  }
  return worst;
}

Layer MakeLayer(int64_t levels, int64_t stride) {
  return RandomLayer({.d = 4, .H = 1, .L = levels, .stride = stride}, 60 + stride);
}

// 6.1: x^(l)_tau depends on tokens in [tau s^l - R_l, tau s^l], both ends attained, all between
// when s <= k; with s > k tokens are skipped.
TEST(ReceptiveField, IsExactlyTheStatedOne) {
  constexpr int64_t kT = 40, kTaps = 3;
  for (const int64_t s : {2, 3, 4}) {
    const Layer layer = MakeLayer(3, s);
    const at::Tensor x = Normal({kT, 4}, 8);
    const SequenceLevels base = Pyramid(layer, x);
    for (int64_t l = 1; l < 3; ++l) {
      const int64_t step = layer.step(l), tau = 20 / step, end = tau * step;
      const int64_t reach = (kTaps - 1) * (step - 1) / (s - 1);
      std::set<int64_t> seen;
      for (int64_t j = 0; j < kT; ++j) {
        at::Tensor changed = x.clone();
        changed[j].add_(1);
        // A row shifted by one number moves no LayerNorm, but this one comes before a convolution.
        changed[j][0].add_(1);
        const auto n = static_cast<size_t>(l);
        if (Distance(Pyramid(layer, changed).x[n][tau], base.x[n][tau]) > 0) seen.insert(j);
      }
      EXPECT_EQ(*seen.rbegin(), end);
      EXPECT_EQ(*seen.begin(), std::max<int64_t>(0, end - reach));
      const int64_t all = end - *seen.begin() + 1;
      if (s <= kTaps || l == 1) {  // the k tokens of one position of level 1 are neighbours
        EXPECT_EQ(static_cast<int64_t>(seen.size()), all);
      } else {
        EXPECT_LT(static_cast<int64_t>(seen.size()), all);
      }
    }
  }
  // s = 4, k = 3: tokens 1 mod 4 never reach level 1.
  const Layer layer = MakeLayer(2, 4);
  const at::Tensor x = Normal({kT, 4}, 8);
  at::Tensor changed = x.clone();
  changed.slice(0, 1, kT, 4).add_(Normal({10, 4}, 9));
  EXPECT_EQ(Distance(Pyramid(layer, changed).x[1], Pyramid(layer, x).x[1]), 0);
}

// 6.2: the outputs; a level lags by i - c_l(i) <= s^l - 1 tokens, and no less at a cell's end.
TEST(ReceptiveField, OutputsAreCausalAndLevelsLag) {
  for (const int64_t s : {2, 3, 4}) {
    EXPECT_EQ(Leak(MakeLayer(3, s), s == 4 ? 21 : 20, {}), 0);
    const Layer layer = MakeLayer(3, s);
    const int64_t step = layer.step(2), cell = 1;
    const at::Tensor x = Normal({3 * step, 4}, 10);
    at::Tensor changed = x.clone();
    changed.slice(0, cell * step + 1, (cell + 1) * step).add_(1.5);
    changed.select(1, 0).slice(0, cell * step + 1, (cell + 1) * step).add_(1);
    // Everything in the cell behind its first token: not seen from inside the cell.
    EXPECT_EQ(Distance(Pyramid(layer, changed).x[2][cell], Pyramid(layer, x).x[2][cell]), 0);
  }
}

// 6.3: rows that valid tokens use never see the padding, with or without the causal mask.
TEST(ReceptiveField, PaddingReachesNoUsedRow) {
  for (const int64_t s : {2, 3}) {
    const Layer layer = MakeLayer(3, s);
    const at::Tensor x = Normal({17, 4}, 11);
    for (const int64_t length : {1, 6, 7, 9, 17}) {
      at::Tensor padded = x.clone();
      padded.slice(0, length).fill_(1e6);
      const SequenceLevels with = Pyramid(layer, padded),
                           cut = Pyramid(layer, x.slice(0, 0, length));
      for (int64_t l = 0; l < 3; ++l) {
        const auto n = static_cast<size_t>(l);
        const int64_t used = cut.x[n].size(0);
        EXPECT_EQ(used, (length - 1) / layer.step(l) + 1);
        // Products of other shapes may round differently.
        EXPECT_LE(Distance(with.x[n].slice(0, 0, used), cut.x[n]), 1e-11);
      }
      // All keys of valid tokens: the bidirectional scores too.
      EXPECT_LE(Distance(FusedScores(layer, with.x, 0, length).slice(2, 0, length),
                         FusedScores(layer, cut.x, 0, length)),
                1e-9);
    }
  }
}

// 6.4: a window that ends at tau s + e leaks e (s^l - 1)/(s - 1) tokens at level l, the mean of the
// cell s^l - 1.
TEST(Leaks, HaveTheStatedLengths) {
  EXPECT_EQ(Leak(MakeLayer(3, 2), 17, {.shift = 1}), 3);
  EXPECT_EQ(Leak(MakeLayer(3, 2), 17, {.pool = true}), 3);
  EXPECT_EQ(Leak(MakeLayer(2, 2), 17, {.shift = 1}), 1);
  EXPECT_EQ(Leak(MakeLayer(2, 2), 17, {.pool = true}), 1);
  EXPECT_EQ(Leak(MakeLayer(3, 3), 20, {.shift = 1}), 4);
  EXPECT_EQ(Leak(MakeLayer(3, 3), 20, {.shift = 2}), 8);
  EXPECT_EQ(Leak(MakeLayer(3, 3), 20, {.pool = true}), 8);
  // The variant that does not leak is the layer's own pyramid.
  const Layer layer = MakeLayer(3, 2);
  const at::Tensor x = Normal({17, 4}, 12);
  const SequenceLevels own = Pyramid(layer, x);
  const auto plain = Levels(layer, x, {});
  for (size_t l = 0; l < 3; ++l) EXPECT_LE(Distance(own.x[l], plain[l]), 1e-12);
}

// A level of one cell shifts whole rows, which the softmax ignores: T has to exceed s^l.
TEST(Leaks, AreInvisibleInSequencesOfOneCell) {
  const Layer layer = MakeLayer(2, 2);
  EXPECT_EQ(Leak(layer, 2, {.pool = true}, 1e-10), 0);
  EXPECT_EQ(Leak(layer, 4, {.pool = true}, 1e-10), 1);
}

}  // namespace
}  // namespace hkt::analysis
