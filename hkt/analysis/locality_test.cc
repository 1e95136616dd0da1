// theory.md 1.3.

#include "hkt/analysis/locality.h"

#include <ATen/TensorIndexing.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hkt/analysis/analysis_test_util.h"
#include "hkt/analysis/kernel.h"
#include "hkt/analysis/moments.h"

namespace hkt::analysis {
namespace {

double Item(const at::Tensor& x) { return x.item<double>(); }

struct Level {
  at::Tensor rows, query, key;
  int64_t step;
  at::Tensor dense;  // k_l over all pairs of tokens
};

// The levels of a layer of one head on T random tokens.
std::vector<Level> Levels(int64_t T, bool psd, uint64_t seed, double* scale,
                          std::vector<double>* lambda = nullptr) {
  const Layer layer = RandomLayer({.d = 6, .H = 2, .L = 3, .psd = psd}, seed);
  const SequenceLevels levels = Pyramid(layer, Normal({T, 6}, seed + 1));
  *scale = layer.scale;
  std::vector<Level> result;
  for (int64_t l = 0; l < layer.L; ++l) {
    const auto n = static_cast<size_t>(l);
    Level level{levels.x[n], layer.levels[n].query[0], layer.levels[n].key[0], layer.step(l), {}};
    const at::Tensor up = at::matmul(CellMatrix(T, level.step), level.rows);
    level.dense = at::matmul(at::matmul(up, Symmetric(ScoreForm(layer, l, 0))), up.t());
    if (lambda) lambda->push_back(Item(layer.lambda[0][l]));
    result.push_back(level);
  }
  return result;
}

at::Tensor SameCell(int64_t T, int64_t step) {
  const at::Tensor cells = CellMatrix(T, step);
  return at::matmul(cells, cells.t()) > 0;
}

int64_t MergeLevel(int64_t i, int64_t j, int64_t s) {
  int64_t m = 0;
  for (; i != j; ++m) {
    i /= s;
    j /= s;
  }
  return m;
}

// (a) For a PSD form |khat| <= 1, and 1 inside a cell; not for an indefinite one.
TEST(Locality, NormalisedKernelIsOneInsideACell) {
  double scale = 0;
  for (const Level& level : Levels(21, true, 1, &scale)) {
    const at::Tensor root = level.dense.diagonal().sqrt();
    const at::Tensor khat = level.dense / (root.unsqueeze(0) * root.unsqueeze(1));
    EXPECT_LE(Item((khat.masked_select(SameCell(21, level.step)) - 1).abs().max()), 1e-12);
    EXPECT_LE(Item(khat.abs().max()), 1 + 1e-12);
    const auto distances = ProfileDistances(21);
    const auto profile =
        DistanceProfile(level.rows, level.query, level.key, scale, 21, level.step, distances);
    for (const DistanceSums& sums : profile) {
      EXPECT_EQ(sums.defined, sums.pairs);
      EXPECT_LE(std::abs(sums.normalised), sums.pairs * (1 + 1e-12));
    }
    EXPECT_NEAR(profile[0].normalised, 21, 1e-11);
  }
  bool above = false, negative = false;
  for (const Level& level : Levels(21, false, 2, &scale)) {
    const at::Tensor own = level.dense.diagonal();
    const at::Tensor product = own.unsqueeze(0) * own.unsqueeze(1);
    const at::Tensor khat = level.dense / product.abs().sqrt();
    above |= Item(khat.masked_select(product > 0).abs().max()) > 1 + 1e-6;
    negative |= Item(own.min()) < 0;
  }
  EXPECT_TRUE(above);
  EXPECT_TRUE(negative);
}

TEST(Locality, ProfileEqualsTheDenseSums) {
  double scale = 0;
  for (const bool psd : {true, false}) {
    for (const Level& level : Levels(23, psd, 3, &scale)) {
      const auto distances = ProfileDistances(23);
      EXPECT_EQ(distances, (std::vector<int64_t>{0, 1, 2, 3, 4, 6, 8, 12, 16}));
      const auto profile =
          DistanceProfile(level.rows, level.query, level.key, scale, 23, level.step, distances);
      const at::Tensor same = SameCell(23, level.step), own = level.dense.diagonal();
      const at::Tensor product = own.unsqueeze(0) * own.unsqueeze(1);
      const at::Tensor khat = at::where(product > 0, level.dense / product.abs().sqrt(), 0.0);
      for (size_t n = 0; n < distances.size(); ++n) {
        const int64_t offset = distances[n];
        EXPECT_EQ(profile[n].pairs, static_cast<double>(23 - offset));
        EXPECT_EQ(profile[n].same_cell, Item(same.diagonal(offset).to(at::kDouble).sum()));
        EXPECT_NEAR(profile[n].kernel, Item(level.dense.diagonal(offset).sum()), 1e-11);
        EXPECT_NEAR(profile[n].level, Item(level.dense.mean()) * profile[n].pairs, 1e-11);
        EXPECT_EQ(profile[n].defined, Item((product.diagonal(offset) > 0).to(at::kDouble).sum()));
        EXPECT_NEAR(profile[n].normalised, Item(khat.diagonal(offset).sum()), 1e-10);
      }
    }
  }
}

// Over all pairs nothing is in excess, of several sequences either: each counts beside its own
// mean.
TEST(Locality, ExcessesOfAllDistancesAreZero) {
  std::vector<DistanceSums> all(4);  // of 3 and of 4 tokens every distance is in the profile
  for (const int64_t T : {3, 4}) {
    double scale = 0;
    const Level level = Levels(T, false, 6, &scale)[0];
    const auto profile =
        DistanceProfile(level.rows, level.query, level.key, scale, T, 1, ProfileDistances(T));
    for (size_t n = 0; n < profile.size(); ++n) all[n].Add(profile[n]);
  }
  double sum = 0;
  for (size_t n = 0; n < all.size(); ++n) sum += (n ? 2 : 1) * all[n].pairs * all[n].excess();
  EXPECT_NEAR(sum, 0, 1e-12);
  EXPECT_GT(std::abs(all[3].excess()), 1e-3);
}

// (b) Only levels finer than the merge separate two tokens; any M.
TEST(Locality, MergedLevelsDoNotSeparateTokens) {
  constexpr int64_t kT = 21;
  double scale = 0;
  std::vector<double> lambda;
  const auto levels = Levels(kT, false, 4, &scale, &lambda);
  at::Tensor gram = at::zeros({kT, kT}, at::kDouble);
  for (size_t l = 0; l < levels.size(); ++l) gram = gram + levels[l].dense * lambda[l];
  const auto* g = gram.const_data_ptr<double>();
  for (int64_t i = 0; i < kT; ++i) {
    for (int64_t j = 0; j < kT; ++j) {
      double separated = 0;
      for (size_t l = 0; l < levels.size() && static_cast<int64_t>(l) < MergeLevel(i, j, 2); ++l) {
        const at::Tensor e =
            levels[l].rows[i / levels[l].step] - levels[l].rows[j / levels[l].step];
        separated += lambda[l] * scale *
                     Item((at::matmul(e, levels[l].query) * at::matmul(e, levels[l].key)).sum());
      }
      EXPECT_NEAR(g[i * kT + i] + g[j * kT + j] - 2 * g[i * kT + j], separated, 1e-11);
    }
  }
}

// (c) tr(M_s Sigma) is the mean over same-cell pairs less the mean over all, for any M.
TEST(Locality, ExcessIsTheMeanOfSameCellPairsLessTheMean) {
  constexpr int64_t kT = 16;
  double scale = 0;
  for (const bool psd : {true, false}) {
    for (const Level& level : Levels(kT, psd, 5, &scale)) {
      Moments moments;
      moments.Add(level.rows);
      const Locality locality =
          LocalPreference(level.query, level.key, scale, moments.Covariance());
      const double inside = Item(level.dense.masked_select(SameCell(kT, level.step)).mean());
      EXPECT_NEAR(locality.excess, inside - Item(level.dense.mean()), 1e-12);
      const at::Tensor m = at::matmul(level.query, level.key.t()) * scale;
      const at::Tensor sigma = moments.Covariance();
      const double energy = Trace(at::matmul(at::matmul(at::matmul(m, sigma), m.t()), sigma));
      EXPECT_NEAR(locality.preference, locality.excess / std::sqrt(energy), 1e-12);
      if (psd) {
        EXPECT_GE(locality.excess, 0);
      }
    }
  }
}

// An indefinite model may prefer what is far: W_K = -W_Q.
TEST(Locality, PreferenceMayBeNegative) {
  const at::Tensor q = Normal({6, 3}, 6), x = Normal({40, 6}, 7);
  Moments moments;
  moments.Add(x);
  EXPECT_GT(LocalPreference(q, q, 1, moments.Covariance()).preference, 0.1);
  EXPECT_LT(LocalPreference(q, -q, 1, moments.Covariance()).preference, -0.1);
}

// (d) The share of pairs at a distance in one cell, over all phases; and neighbours at a cell's
// border never share one.
TEST(Locality, ShareOfPairsInOneCellFallsLinearly) {
  for (const int64_t step : {1, 2, 4, 9}) {
    const int64_t T = 32 * step;
    const at::Tensor same = SameCell(T, step);
    for (int64_t distance = 0; distance <= step + 1; ++distance) {
      const at::Tensor rows = at::arange(16 * step, 17 * step, at::kLong);
      const at::Tensor pairs = same.index({rows, rows - distance});
      EXPECT_NEAR(Item(pairs.to(at::kDouble).mean()),
                  std::max(0.0, 1 - static_cast<double>(distance) / static_cast<double>(step)),
                  1e-15);
    }
    if (step < T) {
      EXPECT_FALSE(same[step - 1][step].item<bool>());
    }
  }
}

TEST(Moments, WithinAndBetweenSequences) {
  const at::Tensor a = Normal({30, 4}, 8) + 3, b = Normal({11, 4}, 9) - 1;
  Moments moments;
  moments.Add(a);
  moments.Add(b);
  moments.Add(Normal({0, 4}, 1));
  const auto centred = [](const at::Tensor& x) { return x - x.mean(0); };
  const at::Tensor all = at::cat({a, b}), c = centred(all), ca = centred(a), cb = centred(b);
  EXPECT_EQ(moments.rows(), 41);
  EXPECT_LE(Distance(moments.Mean(), all.mean(0)), 1e-14);
  EXPECT_LE(Distance(moments.Covariance(), at::matmul(c.t(), c) / 41), 1e-12);
  EXPECT_LE(
      Distance(moments.WithinCovariance(), (at::matmul(ca.t(), ca) + at::matmul(cb.t(), cb)) / 41),
      1e-12);
  Layer layer;
  layer.d = 4;
  layer.bias = true;
  const at::Tensor wide = AugmentedCovariance(layer, moments.Covariance());
  EXPECT_EQ(wide.size(0), 5);
  EXPECT_EQ(Item(wide[4].abs().max()) + Item(wide.select(1, 4).abs().max()), 0);
}

}  // namespace
}  // namespace hkt::analysis
