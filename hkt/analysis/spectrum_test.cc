// theory.md 1.1, 1.2, 1.4 and 2.5: the reduced spectra against dense ones, the condition, and what
// happens where it is broken.

#include "hkt/analysis/spectrum.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/block_diag.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/linalg_eigvals.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/linalg_matrix_norm.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/real.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hkt/analysis/analysis_test_util.h"

namespace hkt::analysis {
namespace {

// n eigenvalue problems of order 100 in double: their errors are of order n eps times the norm.
constexpr double kRounding = 1e-11;

double Item(const at::Tensor& x) { return x.item<double>(); }
at::Tensor DenseForm(const at::Tensor& q, const at::Tensor& k, double scale) {
  return at::matmul(q, k.t()) * scale;
}

struct Case {
  at::Tensor x;  // [T, d]
  std::vector<GramPart> parts;
  std::vector<at::Tensor> dense;  // G_l, T x T
  at::Tensor gram;
};

// The levels of a random layer on random tokens; `tied`: W_K = W_Q.
Case MakeCase(int64_t T, bool tied, uint64_t seed, int64_t heads = 2) {
  const Layer layer = RandomLayer({.d = 6, .H = heads, .L = 3, .psd = tied}, seed);
  Case c;
  c.x = Normal({T, 6}, seed + 1);
  const SequenceLevels levels = Pyramid(layer, c.x);
  c.gram = at::zeros({T, T}, at::kDouble);
  for (int64_t l = 0; l < layer.L; ++l) {
    const LevelWeights& w = layer.levels[static_cast<size_t>(l)];
    const at::Tensor& rows = levels.x[static_cast<size_t>(l)];
    const double weight = Item(layer.lambda[0][l]);
    c.parts.push_back({rows, layer.step(l), weight, Reduce(w.query[0], w.key[0], layer.scale)});
    const at::Tensor up = at::matmul(CellMatrix(T, layer.step(l)), rows);
    const at::Tensor form = Symmetric(DenseForm(w.query[0], w.key[0], layer.scale));
    c.dense.push_back(at::matmul(at::matmul(up, form), up.t()) * weight);
    c.gram = c.gram + c.dense.back();
  }
  return c;
}

// Nonzero eigenvalues of a dense symmetric matrix, ascending.
Inertia Dense(const at::Tensor& m) { return InertiaOf(at::linalg_eigvalsh(m), m.size(0)); }

void ExpectSame(const Inertia& got, const Inertia& want, double size) {
  EXPECT_EQ(got.positive, want.positive);
  EXPECT_EQ(got.negative, want.negative);
  EXPECT_EQ(got.zero, want.zero);
  EXPECT_NEAR(got.min, want.min, kRounding * size);
  EXPECT_NEAR(got.max, want.max, kRounding * size);
  EXPECT_NEAR(got.trace, want.trace, kRounding * size * 10);
  EXPECT_NEAR(got.negative_energy, want.negative_energy, kRounding * 10);
  ASSERT_EQ(got.nonzero.size(), want.nonzero.size());
  for (size_t i = 0; i < got.nonzero.size(); ++i)
    EXPECT_NEAR(got.nonzero[i], want.nonzero[i], kRounding * size);
}

TEST(ReducedForm, GivesTheFormAndItsParts) {
  for (const auto& [d, D] :
       {std::pair<int64_t, int64_t>{64, 16}, {12, 6}, {12, 3}, {8, 6}, {5, 5}}) {
    const at::Tensor q = Normal({d, D}, 1), k = Normal({d, D}, 2);
    const ReducedForm form = Reduce(q, k, 0.3);
    const at::Tensor m = DenseForm(q, k, 0.3);
    const auto whole = [&](const at::Tensor& small) {
      return at::matmul(at::matmul(form.basis, small), form.basis.t());
    };
    EXPECT_LE(Distance(whole(form.symmetric), Symmetric(m)), kRounding);
    EXPECT_LE(Distance(whole(form.skew), Skew(m)), kRounding);
    ExpectSame(form.SymmetricInertia(), Dense(Symmetric(m)), 10);
    EXPECT_NEAR(form.SymmetricInertia().trace, Trace(m), 1e-10);
  }
}

// 2.5: exactly D positive and D negative when 2 D <= d, trained or not; else between r - D and D.
TEST(ReducedForm, InertiaIsForcedByTheWidths) {
  for (const auto& [d, D] :
       {std::pair<int64_t, int64_t>{64, 16}, {64, 32}, {12, 6}, {12, 3}, {8, 6}, {5, 5}, {9, 8}}) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const ReducedForm form = Reduce(Normal({d, D}, 10 + seed), Normal({d, D}, 20 + seed), 1);
      const Inertia inertia = form.SymmetricInertia();
      const int64_t r = std::min(d, 2 * D);
      EXPECT_EQ(inertia.rank(), r);
      EXPECT_EQ(inertia.zero, d - r);
      EXPECT_GE(inertia.negative, r - D);
      EXPECT_LE(inertia.negative, D);
      EXPECT_GE(inertia.positive, r - D);
      EXPECT_LE(inertia.positive, D);
      if (2 * D <= d) {
        EXPECT_EQ(inertia.negative, D);
      }
      EXPECT_EQ(form.SkewRank(), 2 * (r / 2));
    }
  }
}

// 2.5: whatever training does to the weights, a pull of W_K towards W_Q included, the share stays;
// the trace and the energy tell.
TEST(ReducedForm, TheShareSaysNothingWhereTheEnergyDoes) {
  const at::Tensor q = Normal({64, 16}, 3), k = Normal({64, 16}, 4);
  const Inertia random = Reduce(q, k, 1).SymmetricInertia();
  const Inertia pulled = Reduce(q, q + k / 10, 1).SymmetricInertia();
  EXPECT_EQ(random.negative_share(), 0.5);
  EXPECT_EQ(pulled.negative_share(), 0.5);
  EXPECT_GT(random.negative_energy, 0.3);
  EXPECT_LT(pulled.negative_energy, 0.01);
  EXPECT_GT(pulled.trace, 5 * std::abs(random.trace));
}

// 2.5, without full column rank (here W_K shares half its columns with W_Q) nothing forces it.
TEST(ReducedForm, WithoutFullRankTheShareIsFree) {
  const at::Tensor q = Normal({64, 16}, 3);
  const at::Tensor k = at::cat({q.slice(1, 0, 8), Normal({64, 8}, 4)}, 1);
  const Inertia inertia = Reduce(q, k, 1).SymmetricInertia();
  EXPECT_EQ(inertia.positive, 16);
  EXPECT_EQ(inertia.negative, 8);
}

TEST(ReducedForm, HalfIsNegativeOnAverageWhereTwoHeadsWidthsExceedTheModel) {
  std::vector<double> shares;
  bool other = false;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Inertia inertia =
        Reduce(Normal({5, 5}, 100 + seed), Normal({5, 5}, 5000 + seed), 1).SymmetricInertia();
    shares.push_back(inertia.negative_share());
    other |= inertia.negative != 2 && inertia.negative != 3;
  }
  EXPECT_TRUE(MeanWithin(shares, 0.5));
  EXPECT_TRUE(other);  // only on average
}

// A naive sign count over all d eigenvalues in single precision signs the zeros.
TEST(ReducedForm, ANaiveCountSignsTheZeros) {
  const at::Tensor q = Normal({64, 8}, 5), k = Normal({64, 8}, 6);
  const at::Tensor single = Symmetric(at::matmul(q.to(at::kFloat), k.to(at::kFloat).t()));
  const int64_t naive = (at::linalg_eigvalsh(single) < 0).sum().item<int64_t>();
  EXPECT_GT(naive, 8 + 5);
  EXPECT_EQ(Reduce(q, k, 1).SymmetricInertia().negative, 8);
}

// 1.4
TEST(ReducedForm, TiedProjectionsArePositiveSemidefinite) {
  const Layer layer = RandomLayer({.d = 8, .H = 4, .L = 3, .psd = true}, 9);
  for (int64_t l = 0; l < 3; ++l) {
    const LevelWeights& w = layer.levels[static_cast<size_t>(l)];
    const ReducedForm form = Reduce(w.query[1], w.key[1], layer.scale);
    const Inertia inertia = form.SymmetricInertia();
    EXPECT_TRUE(inertia.psd());
    EXPECT_EQ(inertia.rank(), 2);  // D
    EXPECT_LE(form.skew.abs().max().item<double>(), kRounding);
  }
}

TEST(Inertia, CountsByTheTolerance) {
  const Inertia inertia = InertiaOf(at::tensor({3.0, -4.0, 1e-12, -1e-12}, at::kDouble), 6);
  EXPECT_EQ(inertia.positive, 1);
  EXPECT_EQ(inertia.negative, 1);
  EXPECT_EQ(inertia.zero, 4);
  EXPECT_EQ(inertia.nonzero, (std::vector<double>{-4, 3}));
  EXPECT_EQ(inertia.negative_energy, 16.0 / 25);
  EXPECT_EQ(inertia.negative_share(), 0.5);
  EXPECT_EQ(InertiaOf(at::tensor({2.0, 3.0}, at::kDouble), 2).min, 2);
  EXPECT_EQ(InertiaOf(at::tensor({2.0, 3.0}, at::kDouble), 3).min, 0);
  EXPECT_TRUE(std::isnan(InertiaOf(at::zeros({3}, at::kDouble), 3).negative_share()));
}

// The spectra without T x T equal the dense ones, also where T_l or T is below the width.
TEST(Gram, ReducedSpectraEqualTheDenseOnes) {
  for (const int64_t T : {1, 2, 5, 21, 64}) {
    for (const bool tied : {false, true}) {
      SCOPED_TRACE(T);
      const Case c = MakeCase(T, tied, 11);
      const double size = Item(at::linalg_matrix_norm(c.gram)) + 1;
      for (size_t l = 0; l < c.parts.size(); ++l)
        ExpectSame(PartInertia(c.parts[l], T), Dense(c.dense[l]), size);
      ExpectSame(GramInertia(c.parts, T), Dense(c.gram), size);
    }
  }
}

// 1.1: PSD forms make PSD parts and a PSD sum, G = F F^T; exp(G) is PSD, and the attention matrix
// has real eigenvalues in [0, 1].
TEST(Gram, TheConditionMakesItPositiveSemidefinite) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Case c = MakeCase(21, /*tied=*/true, 30 + seed);
    for (const GramPart& part : c.parts) {
      EXPECT_TRUE(part.form.SymmetricInertia().psd());
      EXPECT_TRUE(PartInertia(part, 21).psd());
    }
    EXPECT_TRUE(GramInertia(c.parts, 21).psd());
    EXPECT_EQ(GramDefectBound(c.parts, 21), 0);
    const at::Tensor e = (c.gram / c.gram.abs().max()).exp();
    EXPECT_GE(Item(at::linalg_eigvalsh(e).min()), -kRounding);
    const at::Tensor values = at::linalg_eigvals(e / e.sum(1, true));
    EXPECT_LE(Item(at::imag(values).abs().max()), 1e-8);
    EXPECT_GE(Item(at::real(values).min()), -1e-8);
    EXPECT_LE(Item(at::real(values).max()), 1 + 1e-8);
  }
}

// … and where it is broken G has a negative eigenvalue, above the bound, and without symmetry the
// attention's eigenvalues are complex.
TEST(Gram, TheBrokenConditionShows) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const Case c = MakeCase(21, /*tied=*/false, 50 + seed);
    const Inertia gram = GramInertia(c.parts, 21);
    const double bound = GramDefectBound(c.parts, 21);
    EXPECT_FALSE(gram.psd());
    EXPECT_LT(gram.min, 0);
    EXPECT_LE(bound, gram.min + kRounding);
  }
  const at::Tensor m =
      at::tensor({0.0, 3.0, -3.0, -3.0, 0.0, 3.0, 3.0, -3.0, 0.0}, at::kDouble).view({3, 3});
  const at::Tensor e = m.exp();
  EXPECT_GT(Item(at::imag(at::linalg_eigvals(e / e.sum(1, true))).abs().max()), 0.1);
}

// 1.1: the condition is not necessary on one sequence.
TEST(Gram, TheConditionIsNotNecessary) {
  const at::Tensor eye = at::eye(2, at::kDouble);
  // M = I and M = -I/4 through W_Q = I, W_K = I or -I/4.
  const std::vector<GramPart> parts = {{eye, 1, 0.5, Reduce(eye, eye, 1)},
                                       {eye.slice(0, 0, 1), 2, 0.5, Reduce(eye, eye * -0.25, 1)}};
  EXPECT_FALSE(parts[1].form.SymmetricInertia().psd());
  const Inertia gram = GramInertia(parts, 2);
  EXPECT_EQ(gram.positive, 2);
  EXPECT_NEAR(gram.min, 0.25, 1e-15);
  EXPECT_NEAR(gram.max, 0.5, 1e-15);
}

// 1.1: it is necessary for one level whose tokens span R^d (Sylvester), and for free tuples of
// level vectors, where the kernel matrix is blockdiag(lambda_l M_s^(l)).
TEST(Gram, WhereTheConditionIsNecessary) {
  const at::Tensor q = Normal({6, 6}, 70), k = Normal({6, 6}, 71), x = Normal({21, 6}, 72);
  const ReducedForm form = Reduce(q, k, 1);
  const Inertia small = form.SymmetricInertia(), gram = GramInertia({{x, 1, 1.0, form}}, 21);
  EXPECT_EQ(gram.positive, small.positive);
  EXPECT_EQ(gram.negative, small.negative);
  // Tokens that do not span it: a subspace on which the form is positive.
  const at::Tensor eye = at::eye(4, at::kDouble);
  const ReducedForm indefinite =
      Reduce(eye, eye * at::tensor({1.0, 1.0, -1.0, 1.0}, at::kDouble), 1);
  const at::Tensor inside = Normal({9, 4}, 73) * at::tensor({1.0, 1.0, 0.0, 1.0}, at::kDouble);
  EXPECT_FALSE(indefinite.SymmetricInertia().psd());
  EXPECT_TRUE(GramInertia({{inside, 1, 1.0, indefinite}}, 9).psd());

  const Case c = MakeCase(21, false, 74);
  std::vector<at::Tensor> blocks;
  for (const GramPart& part : c.parts) {
    blocks.push_back(
        at::matmul(at::matmul(part.form.basis, part.form.symmetric), part.form.basis.t()) *
        part.weight);
  }
  EXPECT_FALSE(Dense(at::block_diag(blocks)).psd());
}

// 1.2: the rank of the forms, the two bounds, and that the sharper one is attained by PSD forms on
// generic tokens.
TEST(Gram, RanksMeetTheirBounds) {
  for (const auto& [T, s, ranks] :
       {std::tuple<int64_t, int64_t, std::vector<int64_t>>{16, 2, {3, 3, 3, 3}},
        {27, 3, {2, 4, 6}},
        {16, 2, {2, 20, 20, 20}},
        {9, 2, {1, 1, 1, 1}},
        {9, 2, {4, 1, 9, 9}}}) {
    std::vector<GramPart> parts;
    int64_t step = 1, sum = 0, chain = 0;
    for (size_t l = 0; l < ranks.size(); ++l, step *= s) {
      const at::Tensor r = Normal({24, ranks[l]}, 80 + l);
      parts.push_back({Normal({(T + step - 1) / step, 24}, 90 + l), step, 0.5, Reduce(r, r, 1)});
      EXPECT_EQ(parts.back().form.SymmetricInertia().rank(), ranks[l]);
      sum += std::min((T + step - 1) / step, ranks[l]);
    }
    for (size_t l = ranks.size(); l-- > 0;)
      chain = std::min(parts[l].rows.size(0), chain + std::min(parts[l].rows.size(0), ranks[l]));
    const RankBounds bounds = GramRankBounds(parts, T);
    EXPECT_EQ(bounds.chain, chain);
    EXPECT_EQ(bounds.sum, std::min(T, sum));
    EXPECT_EQ(GramInertia(parts, T).rank(), chain);
    EXPECT_LE(bounds.chain, bounds.sum);
    // A level of weight 0 adds nothing.
    parts.back().weight = 0;
    EXPECT_LE(GramInertia(parts, T).rank(), GramRankBounds(parts, T).chain);
  }
  // The fused S itself: D in place of the rank of M_s.
  const Layer layer = RandomLayer({.d = 6, .H = 3, .L = 2}, 99);
  const SequenceLevels levels = Pyramid(layer, Normal({16, 6}, 98));
  const at::Tensor sigma = at::linalg_svdvals(FusedScores(layer, levels.x, 0, 16)[0]);
  EXPECT_EQ((sigma > 1e-10 * sigma.max()).sum().item<int64_t>(), 2 * layer.D);
}

}  // namespace
}  // namespace hkt::analysis
