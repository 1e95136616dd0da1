// The decomposition on a real pyramid, convolutions, LayerNorm and GELU, over all causal pairs, in
// both families of features (docs/theory.md, 3.1 to 3.3).

#include "hkt/analysis/truncation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hkt/analysis/analysis_test_util.h"
#include "hkt/analysis/least_squares.h"
#include "hkt/analysis/pair_scores.h"
#include "hkt/analysis/quantisation.h"
#include "hkt/analysis/sample_test_util.h"

namespace hkt::analysis {
namespace {

constexpr int64_t kLevels = 5, kT = 32, kSequences = 24, kWidth = 4;
constexpr double kExact = 1e-9;

// Row-centred products of entries x_i x_j^T, [P, d^2]: the bilinear family of one level.
at::Tensor Bilinear(const at::Tensor& rows) {
  const at::Tensor outer = at::einsum("ia,jb->ijab", {rows, rows}).flatten(2);  // [T, T, d^2]
  std::vector<at::Tensor> centred;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const at::Tensor row = outer[i].slice(0, 0, i + 1);
    centred.push_back(row - row.mean(0));
  }
  return at::cat(centred);
}

struct Problem {
  Problem()
      : layer(RandomLayer({.d = kWidth, .L = kLevels, .hybrid = false}, 35)), stack(4 * kLevels) {
    Sampler sampler(36);
    const PairDraw all = AllPairs(kT, true);
    std::vector<std::vector<at::Tensor>> features(2 * kLevels);
    for (int64_t b = 0; b < kSequences; ++b) {
      std::vector<at::Tensor> rows = {sampler.Normal({kWidth})};
      for (int64_t i = 1; i < kT; ++i) rows.push_back(0.9 * rows.back() + sampler.Normal({kWidth}));
      const SequenceLevels levels = Pyramid(layer, at::stack(rows));
      const ScoreColumns columns = PairScores(layer, levels).Uniform(all.i, all.j);
      stack.Add(at::cat({columns.decimated, columns.undecimated}, 2)[0]);
      for (int64_t l = 0; l < kLevels; ++l) {
        const at::Tensor& z = levels.z[static_cast<size_t>(l)];
        features[static_cast<size_t>(l)].push_back(Bilinear(FirstOfCell(z, layer.step(l))));
        features[static_cast<size_t>(kLevels + l)].push_back(Bilinear(z));
      }
    }
    for (const auto& parts : features) bilinear.push_back(at::cat(parts));
    // Terms of sizes 0.6^l: weights that undo the size of each level's scores.
    const at::Tensor means = stack.Means();
    std::vector<double> a;
    for (int64_t l = 0; l < kLevels; ++l) {
      const at::Tensor level = means.select(1, 2 * kLevels + l) + means.select(1, 3 * kLevels + l);
      a.push_back(std::pow(0.6, l) / level.square().sum().sqrt().item<double>());
    }
    weights = at::tensor(a, at::kDouble);
    gain = weights.sum().item<double>();
    weights = weights / gain;
  }
  Layer layer;
  RowStack stack;
  std::vector<at::Tensor> bilinear;  // [l] decimated, [kLevels + l] undecimated: [P, d^2]
  at::Tensor weights;
  double gain = 1;
};

const Problem& TheProblem() {
  static const Problem problem;
  return problem;
}

TEST(Truncation, OnARealPyramid) {
  const Problem& p = TheProblem();
  const HeadTruncations head = DecomposeHead(p.stack.Means(), p.weights, p.gain);
  EXPECT_NEAR(head.decay_rate, 0.6, 1e-9);
  ASSERT_EQ(head.truncations.size(), static_cast<size_t>(kLevels));
  double last = INFINITY;
  for (const Truncation& t : head.truncations) {
    EXPECT_LE(std::abs(t.terms.gap()), kExact);
    EXPECT_LE(t.terms.hierarchical, t.tail_bound * (1 + kExact) + 1e-15);
    EXPECT_LE(t.terms.hierarchical, last);
    EXPECT_EQ(t.terms.rank_u, 2 * t.levels);
    EXPECT_EQ(t.terms.rank_v, 4 * t.levels - 2);  // level 0 is in both families
    last = t.terms.hierarchical;
  }
  const Truncation& whole = head.truncations.back();
  EXPECT_LE(whole.terms.hierarchical, 1e-15 * head.target);
  EXPECT_LE(whole.terms.quantisation, whole.quantisation_bound * (1 + kExact));
  // At all levels with the target's own weights the error is the cost of downsampling, twice named.
  EXPECT_TRUE(
      Near(whole.terms.quantisation + whole.terms.optimisation, whole.quantisation_bound, kExact));
  EXPECT_TRUE(std::isnan(head.truncations[0].quantisation_bound));
  EXPECT_LT(head.truncations[2].terms.hierarchical, 0.5 * head.truncations[0].terms.hierarchical);
}

// Products of entries reach at least what the level scores reach.
TEST(Truncation, InTheBilinearFamilyToo) {
  const Problem& p = TheProblem();
  const HeadTruncations head = DecomposeHead(p.stack.Means(), p.weights, p.gain);
  const int64_t n = p.bilinear[0].size(0);
  const auto score = [&](size_t feature, int64_t l) {  // a_l x_i^T M x_j
    const at::Tensor M = ScoreForm(p.layer, l, 0).flatten();
    return p.gain * p.weights[l] * at::mv(p.bilinear[feature], M);
  };
  at::Tensor target, model;
  for (int64_t l = 0; l < kLevels; ++l) {
    const at::Tensor term = score(static_cast<size_t>(kLevels + l), l);
    target = l == 0 ? term : target + term;
  }
  EXPECT_TRUE(Near(target.square().mean().item<double>(), head.target, 1e-9));
  for (int64_t levels = 1; levels <= 2; ++levels) {
    RowStack stack(2 * levels * kWidth * kWidth + 2);
    std::vector<at::Tensor> columns;
    for (int64_t l = 0; l < levels; ++l) columns.push_back(p.bilinear[static_cast<size_t>(l)]);
    for (int64_t l = 0; l < levels; ++l)
      columns.push_back(p.bilinear[static_cast<size_t>(kLevels + l)]);
    const double renormalised = 1 / p.weights.narrow(0, 0, levels).sum().item<double>();
    for (int64_t l = 0; l < levels; ++l) {
      const at::Tensor term = renormalised * score(static_cast<size_t>(l), l);
      model = l == 0 ? term : model + term;
    }
    columns.push_back(target.unsqueeze(1));
    columns.push_back(model.unsqueeze(1));
    stack.Add(at::cat(columns, 1));
    const at::Tensor means = stack.Means();
    const int64_t width = levels * kWidth * kWidth;
    const ErrorTerms terms = Decompose(means.select(1, 2 * width), means.select(1, 2 * width + 1),
                                       means.narrow(1, 0, width), means.narrow(1, width, width));
    const ErrorTerms& scalar = head.truncations[static_cast<size_t>(levels - 1)].terms;
    EXPECT_LE(std::abs(terms.gap()), kExact);
    EXPECT_TRUE(Near(terms.total, scalar.total, 1e-9));
    EXPECT_LT(terms.hierarchical, scalar.hierarchical);
    EXPECT_GT(n, 4 * width);
  }
}

// A target that is no sum of the head's terms: the right side of 3.3 is no bound then.
TEST(Truncation, TheQuantisationBoundNeedsItsTarget) {
  const Problem& p = TheProblem();
  const at::Tensor means = p.stack.Means();
  const at::Tensor u = means.narrow(1, 0, 2 * kLevels),
                   v = means.narrow(1, 2 * kLevels, 2 * kLevels);
  const at::Tensor a = at::cat({p.weights, p.weights});
  // S* has three times the coefficients that the candidate sum a_l (St_l - S_l) presumes.
  const at::Tensor target = at::mv(v, 3 * a);
  const double candidate = at::mv(v - u, a).square().sum().item<double>();
  EXPECT_GT(Decompose(target, at::mv(u, a), u, v).quantisation, candidate);
}

TEST(Truncation, PartsOfTheOptimisationTermAddUp) {
  const Problem& p = TheProblem();
  RowStack train(4 * kLevels);
  Sampler sampler(37);
  const PairDraw all = AllPairs(kT, true);
  for (int b = 0; b < 6; ++b) {
    const SequenceLevels levels = Pyramid(p.layer, sampler.Normal({kT, kWidth}));
    const ScoreColumns columns = PairScores(p.layer, levels).Uniform(all.i, all.j);
    train.Add(at::cat({columns.decimated, columns.undecimated}, 2)[0]);
  }
  const at::Tensor means = p.stack.Means();
  const HeadTruncations head = DecomposeHead(means, p.weights, p.gain);
  for (int64_t levels = 1; levels <= kLevels; ++levels) {
    const OptimisationParts parts = SplitHead(means, train.Means(), p.weights, p.gain, levels);
    const ErrorTerms& terms = head.truncations[static_cast<size_t>(levels - 1)].terms;
    EXPECT_LE(std::abs(parts.sum() - terms.optimisation), kExact * head.target);
    EXPECT_LE(std::abs(parts.train_excess - parts.train_distance), kExact * head.target);
    EXPECT_GT(parts.finite_sample, 0);
  }
}

TEST(Truncation, CoefficientsAreRenormalised) {
  const at::Tensor weights = at::tensor({0.2, 0.3, 0.5}, at::kDouble);
  const at::Tensor got = TruncatedCoefficients(weights, 2, 2);
  EXPECT_LE(Distance(got, at::tensor({0.8, 1.2, 0.8, 1.2}, at::kDouble)), 1e-15);
  const at::Tensor columns = at::arange(6, at::kDouble).unsqueeze(0);
  EXPECT_LE(Distance(TruncatedColumns(columns, 2),
                     at::tensor({0.0, 1.0, 3.0, 4.0}, at::kDouble).unsqueeze(0)),
            0);
}

}  // namespace
}  // namespace hkt::analysis
