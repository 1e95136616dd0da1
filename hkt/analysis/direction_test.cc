// theory.md 2.1 to 2.4 and 2.6.

#include "hkt/analysis/direction.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_inv.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/log.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hkt/analysis/analysis_test_util.h"
#include "hkt/base/random.h"

namespace hkt::analysis {
namespace {

double Item(const at::Tensor& x) { return x.item<double>(); }
double Energy(const at::Tensor& m) { return Item(m.square().sum()); }

int64_t MergeLevel(int64_t i, int64_t j, int64_t s) {
  int64_t m = 0;
  for (; i != j; ++m) {
    i /= s;
    j /= s;
  }
  return m;
}

// Q of a QR factorisation with the signs that make it Haar distributed.
at::Tensor Haar(int64_t d, uint64_t seed) {
  auto [q, r] = at::linalg_qr(Normal({d, d}, seed), "reduced");
  return q * r.diagonal().sign();
}

// 2.1
TEST(Direction, TheSplitIsOrthogonalAndTheOnlyOne) {
  const Layer layer = RandomLayer({.d = 6, .H = 2, .L = 3}, 1);
  for (int64_t l = 0; l < 3; ++l) {
    const at::Tensor m = ScoreForm(layer, l, 1), s = Symmetric(m), a = Skew(m);
    EXPECT_LE(Distance(s + a, m), 1e-15);
    EXPECT_NEAR(Item((s * a).sum()), 0, 1e-14);
    EXPECT_NEAR(Energy(m), Energy(s) + Energy(a), 1e-13);
    // What moves from one part to the other keeps neither symmetric nor skew.
    const at::Tensor moved = s + a / 10;
    EXPECT_GT(Energy(Skew(moved)), 0);
  }
}

// 2.2: S_ij + S_ji from the symmetric parts of all levels, S_ij - S_ji from the skew parts of the
// levels below the merge only.
TEST(Direction, MergedLevelsHaveNoDirection) {
  constexpr int64_t kT = 13;
  const Layer layer = RandomLayer({.d = 6, .H = 1, .L = 3}, 2);
  const SequenceLevels levels = Pyramid(layer, Normal({kT, 6}, 3));
  const at::Tensor fused = FusedScores(layer, levels.x, 0, kT)[0];
  const auto* s = fused.const_data_ptr<double>();
  for (int64_t i = 0; i < kT; ++i) {
    for (int64_t j = 0; j < kT; ++j) {
      double reciprocal = 0, directional = 0, merged = 0;
      for (int64_t l = 0; l < layer.L; ++l) {
        const at::Tensor &rows = levels.x[static_cast<size_t>(l)], x = rows[i / layer.step(l)],
                         y = rows[j / layer.step(l)], m = ScoreForm(layer, l, 0);
        const double w = 2 * Item(layer.weights[0][l]);
        const double skew = w * Item(at::matmul(at::matmul(x, Skew(m)), y));
        reciprocal += w * Item(at::matmul(at::matmul(x, Symmetric(m)), y));
        (l < MergeLevel(i, j, 2) ? directional : merged) += skew;
      }
      EXPECT_NEAR(s[i * kT + j] + s[j * kT + i], reciprocal, 1e-12);
      EXPECT_NEAR(s[i * kT + j] - s[j * kT + i], directional, 1e-12);
      EXPECT_NEAR(merged, 0, 1e-12);
    }
  }
}

// The feature matrix of (A_0 … A_{L-1}) -> scores on causal pairs, rows less their mean when
// `centred`.
int64_t FeatureRank(int64_t T, int64_t d, int64_t L, bool centred) {
  const Layer layer = RandomLayer({.d = d, .H = 1, .L = L}, 4);
  const SequenceLevels levels = Pyramid(layer, Normal({T, d}, 5));
  std::vector<at::Tensor> columns;
  for (int64_t l = 0; l < L; ++l) {
    const at::Tensor up =
        at::matmul(CellMatrix(T, layer.step(l)), levels.x[static_cast<size_t>(l)]);
    columns.push_back(at::einsum("ia,jb->ijab", {up, up}).flatten(2));
  }
  const at::Tensor features = at::cat(columns, 2);
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < T; ++i) {
    const at::Tensor row = features[i].slice(0, 0, i + 1);
    rows.push_back(centred ? row - row.mean(0) : row);
  }
  const at::Tensor sigma = at::linalg_svdvals(at::cat(rows));
  return (sigma > 1e-10 * sigma.max()).sum().item<int64_t>();
}

// 2.3: L independent pairs, identifiable from the scores, also after the softmax's invariance; not
// where the coarsest level is one cell, whose scores are constant in a row.
TEST(Direction, TheLevelsFormsAreIdentifiable) {
  EXPECT_EQ(FeatureRank(40, 3, 3, false), 3 * 9);
  EXPECT_EQ(FeatureRank(40, 3, 3, true), 3 * 9);
  EXPECT_LT(FeatureRank(4, 3, 3, true), 3 * 9);
  // Exactly: T = 8 tokens and a fourth level of one cell.
  EXPECT_LE(FeatureRank(8, 2, 4, true), 3 * 4);
}

// 2.3, within a level: rank(M) <= D couples the two parts.
TEST(Direction, WithinALevelTheRankCouplesTheParts) {
  const Layer layer = RandomLayer({.d = 9, .H = 3, .L = 1}, 6);
  const at::Tensor m = ScoreForm(layer, 0, 0);
  const auto rank = [](const at::Tensor& x) {
    const at::Tensor sigma = at::linalg_svdvals(x);
    return (sigma > 1e-10 * sigma.max()).sum().item<int64_t>();
  };
  EXPECT_EQ(rank(m), 3);
  EXPECT_EQ(rank(Skew(m)), 6);
  EXPECT_EQ(rank(Symmetric(m)), 6);
}

// 2.4
TEST(Antisymmetry, EqualsTheDenseShare) {
  for (const auto& [d, D] : {std::pair<int64_t, int64_t>{8, 3}, {5, 5}, {4, 1}, {3, 7}}) {
    const at::Tensor q = Normal({d, D}, 7), k = Normal({d, D}, 8), m = at::matmul(q, k.t());
    EXPECT_NEAR(AntisymmetryOf(q, k).alpha, Energy(Skew(m)) / Energy(m), 1e-13);
    // On data: Sigma = C C^T gives the share of C^T M C.
    const at::Tensor c = Normal({d, d}, 9), inner = at::matmul(at::matmul(c.t(), m), c);
    EXPECT_NEAR(DataAntisymmetry(q, k, at::matmul(c, c.t())), Energy(Skew(inner)) / Energy(inner),
                1e-12);
  }
  const at::Tensor q = Normal({6, 2}, 10);
  EXPECT_NEAR(AntisymmetryOf(q, q).alpha, 0, 1e-15);
}

TEST(Antisymmetry, GaussianProjectionsGiveTheExpectedShareExactly) {
  for (const auto& [d, D] : {std::pair<int64_t, int64_t>{8, 3}, {5, 5}, {4, 1}}) {
    std::vector<double> alphas;
    double expected = 0;
    for (uint64_t seed = 0; seed < 2000; ++seed) {
      const Antisymmetry a = AntisymmetryOf(Normal({d, D}, 2 * seed), Normal({d, D}, 2 * seed + 1));
      alphas.push_back(a.alpha);
      expected = a.expected;
    }
    EXPECT_EQ(expected, static_cast<double>(d - 1) / static_cast<double>(2 * d));
    EXPECT_TRUE(MeanWithin(alphas, expected));
    EXPECT_FALSE(MeanWithin(alphas, 0.5));  // the bound is narrow enough to tell
  }
}

// Given the singular values, M = U D V with Haar U, V.
TEST(Antisymmetry, DeviationIsThatOfHaarBases) {
  for (const auto& [d, values] : {std::pair<int64_t, std::vector<double>>{8, {1.5, 0.4, 0.1}},
                                  {5, {1, 1, 1, 1, 1}},
                                  {4, {2}}}) {
    const at::Tensor sigma = at::tensor(values, at::kDouble);
    const auto D = static_cast<int64_t>(values.size());
    std::vector<double> squares, scores;
    double variance = 0;
    for (uint64_t seed = 0; seed < 3000; ++seed) {
      const at::Tensor u = Haar(d, 3 * seed + 100).slice(1, 0, D) * sigma;
      const Antisymmetry a = AntisymmetryOf(u, Haar(d, 3 * seed + 101).slice(1, 0, D));
      variance = a.deviation * a.deviation;
      squares.push_back((a.alpha - a.expected) * (a.alpha - a.expected));
      scores.push_back(a.z);
    }
    EXPECT_TRUE(MeanWithin(squares, variance));
    EXPECT_TRUE(MeanWithin(scores, 0));
  }
}

// Other independent starts, PyTorch's uniform one: the ratio of the means.
TEST(Antisymmetry, UniformStartKeepsTheRatioOfMeans) {
  Random random({11});
  const auto uniform = [&random] {
    at::Tensor x = at::zeros({6, 2}, at::kDouble);
    for (int64_t i = 0; i < x.numel(); ++i)
      x.mutable_data_ptr<double>()[i] = 2 * random.Uniform() - 1;
    return x;
  };
  std::vector<double> differences;
  for (int n = 0; n < 4000; ++n) {
    const at::Tensor m = at::matmul(uniform(), uniform().t());
    differences.push_back(Energy(Skew(m)) - 5.0 / 12 * Energy(m));
  }
  EXPECT_TRUE(MeanWithin(differences, 0));
}

// For independent centred tokens the data version is the directional share of the variance.
TEST(Antisymmetry, OnDataItIsTheDirectionalShareOfTheVariance) {
  const at::Tensor q = Normal({5, 2}, 12), k = Normal({5, 2}, 13), c = Normal({5, 5}, 14);
  const double share = DataAntisymmetry(q, k, at::matmul(c, c.t()));
  const at::Tensor x = at::matmul(Normal({40000, 5}, 15), c.t());
  const at::Tensor y = at::matmul(Normal({40000, 5}, 16), c.t());
  const at::Tensor forth = (at::matmul(x, q) * at::matmul(y, k)).sum(1);
  const at::Tensor back = (at::matmul(y, q) * at::matmul(x, k)).sum(1);
  // E(S - S')^2 / 4 - share * E(S^2 + S'^2) / 2 is 0 on average.
  const at::Tensor difference =
      ((forth - back).square() / 4 - share * (forth.square() + back.square()) / 2).contiguous();
  const auto* data = difference.const_data_ptr<double>();
  EXPECT_TRUE(MeanWithin({data, data + difference.numel()}, 0));
  EXPECT_GT(std::abs(share - AntisymmetryOf(q, k).alpha), 1e-3);  // the covariance matters
}

TEST(Slope, IsThatOfLeastSquares) {
  EXPECT_NEAR(Slope({1, 3, 5, 7}), 2, 1e-15);
  EXPECT_NEAR(Slope({1, 0, 5}), 2, 1e-15);
  EXPECT_TRUE(std::isnan(Slope({1})));
}

// 2.6: "a before b when close, b before a when far" with two levels, which one level cannot say.
TEST(Direction, TwoLevelsTurnTheDirectionWithTheDistance) {
  const at::Tensor eye = at::eye(4, at::kDouble);
  const at::Tensor a = eye[0], b = eye[1], filler = eye[2];
  const at::Tensor skew = at::outer(b, a) - at::outer(a, b);
  Layer layer;
  layer.d = 4;
  layer.H = 1;
  layer.D = 4;
  layer.L = 2;
  layer.stride = 2;
  layer.scale = 1;
  layer.weights = at::tensor({0.5, 0.5}, at::kDouble).view({1, 2});
  const auto level = [&](const at::Tensor& form) {  // M = form I^T
    LevelWeights w;
    w.query = form.unsqueeze(0);
    w.key = eye.unsqueeze(0);
    w.depthwise_weight = at::stack(
        {at::zeros({4}, at::kDouble), at::zeros({4}, at::kDouble), at::ones({4}, at::kDouble)}, 1);
    w.depthwise_bias = w.pointwise_bias = w.norm_bias = at::zeros({4}, at::kDouble);
    w.pointwise_weight = eye;
    w.norm_weight = at::ones({4}, at::kDouble);
    return w;
  };
  layer.levels = {level(skew), level(skew)};
  // Level 1 carries u_v = GELU(LN(v)); rows of U. Its form is -2 U^-1 N U^-T.
  std::vector<at::Tensor> images;
  for (int64_t v = 0; v < 4; ++v) images.push_back(Pyramid(layer, eye[v].unsqueeze(0)).x[1][0]);
  const at::Tensor inverse = at::linalg_inv(at::stack(images));
  layer.levels[1] = level(at::matmul(at::matmul(inverse, skew * -2), inverse.t()));

  const auto score = [](const Layer& of, const std::vector<at::Tensor>& symbols, int64_t i) {
    return Item(FusedScores(of, Pyramid(of, at::stack(symbols)).x, i, i + 1)[0][0][0]);
  };
  const auto near = [&](const Layer& of) {
    return score(of, {a, b, filler}, 1) - score(of, {b, a, filler}, 1);
  };
  const auto far = [&](const Layer& of) {
    return score(of, {a, filler, b}, 2) - score(of, {b, filler, a}, 2);
  };
  EXPECT_NEAR(near(layer), 1, 1e-9);
  EXPECT_NEAR(far(layer), -1, 1e-9);
  // One level, whatever its form: the same at every distance.
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Layer one = layer;
    one.L = 1;
    one.levels = {level(Normal({4, 4}, 20 + seed))};
    one.weights = at::ones({1, 1}, at::kDouble);
    EXPECT_NEAR(near(one), far(one), 1e-12);
    EXPECT_GE(std::max(std::abs(near(one) - 1), std::abs(far(one) + 1)), 1 - 1e-12);
  }
}

}  // namespace
}  // namespace hkt::analysis
