// Second moments of scores under kurtosis: exact where the theory says so, and not where a
// condition is broken (docs/theory.md, 3.5).

#include "hkt/analysis/correction.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/diag.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/einsum.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_inv.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hkt/analysis/decomposition.h"
#include "hkt/analysis/kurtosis.h"
#include "hkt/analysis/sample_test_util.h"

namespace hkt::analysis {
namespace {

constexpr int64_t kRows = 200000, kWidth = 5;

at::Tensor Symmetric(const at::Tensor& M) { return (M + M.t()) / 2; }

double TraceOf(const at::Tensor& a, const at::Tensor& b) {
  return (a * b.t()).sum().item<double>();
}

// What a mean adds to E(x^T M x)^2: 4 mu^T M_s Sigma M_s mu + (mu^T M mu)^2 + 2 mu^T M mu tr(M_s
// Sigma), for symmetric laws.
double MeanSecondMoment(const at::Tensor& M, const at::Tensor& covariance, const at::Tensor& mean) {
  const at::Tensor s = Symmetric(M), along = at::mv(s, mean);
  const double at_mean = at::dot(mean, along).item<double>();
  return 4 * at::dot(along, at::mv(covariance, along)).item<double>() + at_mean * at_mean +
         2 * at_mean * TraceOf(s, covariance);
}

// tr(M Sigma_y M^T Sigma_x) + tr((M Sigma_yx)^2) + tr(M Sigma_yx)^2: E(x^T M y)^2 of a jointly
// Gaussian pair, Sigma_yx = E y x^T; of a jointly elliptical one times 1 + gamma of the pair.
double JointSecondMoment(const at::Tensor& M, const at::Tensor& sigma_x, const at::Tensor& sigma_y,
                         const at::Tensor& sigma_yx) {
  const at::Tensor a = at::mm(M, sigma_yx);
  const double trace = a.diagonal().sum().item<double>();
  return IndependentSecondMoment(M, sigma_x, sigma_y) + TraceOf(a, a) + trace * trace;
}

// Heavy-tailed, skewed rows with mean 0: elliptical in no way.
at::Tensor Skewed(Sampler& sampler, int64_t n, int64_t d) {
  const at::Tensor x = sampler.Exponential({n, d}).pow(3);
  return x - x.mean(0);
}

double Kappa(const at::Tensor& x, const at::Tensor& sigma) {
  return Scores(x, at::linalg_inv(sigma), x).square().mean().item<double>();
}

struct Setting {
  explicit Setting(uint64_t seed)
      : sampler(seed),
        mix(sampler.Normal({kWidth, kWidth})),
        sigma(at::mm(mix.t(), mix)),
        M(sampler.Normal({kWidth, kWidth})) {}

  at::Tensor Gaussian() { return at::mm(sampler.Normal({kRows, kWidth}), mix); }
  at::Tensor Elliptical() { return at::mm(sampler.Mixture(kRows, kWidth), mix); }  // gamma = 1

  Sampler sampler;
  at::Tensor mix, sigma, M;
};

TEST(Correction, EllipticalQuadraticForm) {
  Setting set(31);
  const at::Tensor g = set.Gaussian(), x = set.Elliptical();
  const double gaussian = GaussianSecondMoment(set.M, set.sigma);
  EXPECT_TRUE(Within(Scores(g, set.M, g).square(), gaussian));
  EXPECT_TRUE(Within(Scores(x, set.M, x).square(), 2 * gaussian));
  EXPECT_FALSE(Within(Scores(x, set.M, x).square(), gaussian));
}

TEST(Correction, AMeanAddsItsTerms) {
  Setting set(32);
  const at::Tensor mean = set.sampler.Normal({kWidth});
  const at::Tensor x = set.Elliptical() + mean;
  EXPECT_TRUE(Within(Scores(x, set.M, x).square(), 2 * GaussianSecondMoment(set.M, set.sigma) +
                                                       MeanSecondMoment(set.M, set.sigma, mean)));
}

// Exact for elliptical laws only: independent coordinates of another law miss it for a diagonal M,
// though their kappa is measured right.
TEST(Correction, NotOfOtherLaws) {
  Sampler sampler(33);
  const at::Tensor x = sampler.Exponential({kRows, kWidth}) - 1;  // covariance I, E x_i^4 = 9
  const at::Tensor identity = at::eye(kWidth, at::kDouble);
  const double factor = Kappa(x, identity) / (kWidth * (kWidth + 2));
  at::Tensor M = at::diag(at::tensor({1.0, -1.0, 0.0, 0.0, 0.0}, at::kDouble));
  EXPECT_FALSE(Within(Scores(x, M, x).square(), factor * GaussianSecondMoment(M, identity)));
  EXPECT_TRUE(Within(Scores(x, M, x).square(), 2 * (9 - 1)));  // E (x_1^2 - x_2^2)^2
}

TEST(Correction, IndependentTokensNeedNone) {
  Setting set(34);
  const at::Tensor x = set.Elliptical(), y = set.Elliptical();
  const double want = IndependentSecondMoment(set.M, set.sigma, set.sigma);
  EXPECT_TRUE(Within(Scores(x, set.M, y).square(), want));
  // Any laws: skewed rows too, with their own second moments.
  const at::Tensor z = Skewed(set.sampler, kRows, kWidth);
  EXPECT_TRUE(Within(Scores(x, set.M, z).square(),
                     IndependentSecondMoment(set.M, set.sigma, at::mm(z.t(), z) / kRows)));
  // Tokens that share their scale are uncorrelated and yet not independent: the factor is back.
  const at::Tensor scale = set.sampler.Mixture(kRows, 1).abs();
  const at::Tensor u = at::mm(set.sampler.Normal({kRows, kWidth}) * scale, set.mix);
  const at::Tensor v = at::mm(set.sampler.Normal({kRows, kWidth}) * scale, set.mix);
  EXPECT_FALSE(Within(Scores(u, set.M, v).square(), want));
}

TEST(Correction, JointlyEllipticalPair) {
  Setting set(35);
  const at::Tensor mix = set.sampler.Normal({2 * kWidth, 2 * kWidth}), sigma = at::mm(mix.t(), mix);
  const at::Tensor pair = at::mm(set.sampler.Mixture(kRows, 2 * kWidth), mix);
  const auto block = [&](int64_t row, int64_t column) {
    return sigma.narrow(0, row * kWidth, kWidth).narrow(1, column * kWidth, kWidth);
  };
  const at::Tensor x = pair.narrow(1, 0, kWidth), y = pair.narrow(1, kWidth, kWidth);
  const double gaussian = JointSecondMoment(set.M, block(0, 0), block(1, 1), block(1, 0));
  EXPECT_TRUE(Within(Scores(x, set.M, y).square(), 2 * gaussian));
  EXPECT_FALSE(Within(Scores(x, set.M, y).square(),
                      2 * IndependentSecondMoment(set.M, block(0, 0), block(1, 1))));
  // y = x is the quadratic form.
  EXPECT_TRUE(Near(JointSecondMoment(set.M, set.sigma, set.sigma, set.sigma),
                   GaussianSecondMoment(set.M, set.sigma), 1e-12));
}

// (b) holds of every sample with its own second moments, whatever law and dependence.
TEST(Correction, OperatorNormBoundsEveryLaw) {
  Sampler sampler(36);
  const at::Tensor x = Skewed(sampler, 400, kWidth), sigma = at::mm(x.t(), x) / 400;
  const double kappa = Kappa(x, sigma);
  for (int i = 0; i < 50; ++i) {
    const at::Tensor M = sampler.Normal({kWidth, kWidth});
    const double same = OperatorNorm(Symmetric(M), sigma, sigma),
                 any = OperatorNorm(M, sigma, sigma);
    EXPECT_LE(Scores(x, M, x).square().mean().item<double>(), kappa * same * same * (1 + 1e-12));
    const at::Tensor y = x.index_select(0, sampler.Permutation(400));  // any coupling
    EXPECT_LE(Scores(x, M, y).square().mean().item<double>(), kappa * any * any * (1 + 1e-12));
  }
  // Attained by M = Sigma^-1, whose norm is 1; the Gaussian value of kappa would be too small here.
  const at::Tensor inverse = at::linalg_inv(sigma);
  EXPECT_TRUE(Near(OperatorNorm(inverse, sigma, sigma), 1, 1e-8));
  EXPECT_GT(Scores(x, inverse, x).square().mean().item<double>(), kWidth * (kWidth + 2));
}

// (e) Any law: the factor of kappa is exact on average over rotations of M in whitened coordinates.
TEST(Correction, ExactOnAverageOverRotations) {
  Sampler sampler(37);
  const at::Tensor z = Skewed(sampler, 400, kWidth);
  const Spread spread = MeasureSpread(std::vector<at::Tensor>{z});
  const at::Tensor w = spread.Whiten(z), M = sampler.Normal({kWidth, kWidth});
  const double kappa = w.square().sum(1).square().mean().item<double>();
  std::vector<double> squares;
  for (int i = 0; i < 1500; ++i) {
    const at::Tensor o = sampler.Haar(kWidth);
    squares.push_back(Scores(w, at::mm(at::mm(o.t(), M), o), w).square().mean().item<double>());
  }
  const double gaussian = GaussianSecondMoment(M, at::eye(kWidth, at::kDouble));
  EXPECT_TRUE(Within(at::tensor(squares, at::kDouble), kappa / (kWidth * (kWidth + 2)) * gaussian));
  EXPECT_FALSE(Within(at::tensor(squares, at::kDouble), gaussian));
}

// (e) Over Gaussian W_Q, W_K the factor is E|x|^4 / (2 tr Sigma^2 + tr(Sigma)^2): both means
// exactly.
TEST(Correction, FactorOverGaussianWeights) {
  Sampler sampler(38);
  at::Tensor z =
      sampler.Exponential({300, 4}).square() * at::tensor({1.0, 2.0, 3.0, 4.0}, at::kDouble);
  z = z - z.mean(0);
  const at::Tensor sigma = at::mm(z.t(), z) / 300;
  std::vector<double> measured, gaussian;
  for (int i = 0; i < 10000; ++i) {
    const at::Tensor M = at::mm(sampler.Normal({4, 2}), sampler.Normal({2, 4})) / std::sqrt(2.0);
    measured.push_back(Scores(z, M, z).square().mean().item<double>());
    gaussian.push_back(GaussianSecondMoment(M, sigma));
  }
  const double trace = sigma.diagonal().sum().item<double>();
  EXPECT_TRUE(
      Within(at::tensor(measured, at::kDouble), z.square().sum(1).square().mean().item<double>()));
  EXPECT_TRUE(Within(at::tensor(gaussian, at::kDouble),
                     2 * sigma.square().sum().item<double>() + trace * trace));
}

TEST(Correction, SameCellShareIsCounted) {
  for (const auto& [T, step] :
       std::vector<std::pair<int64_t, int64_t>>{{16, 4}, {64, 8}, {8, 1}, {13, 4}, {3, 9}}) {
    int64_t same = 0, causal = 0;
    for (int64_t i = 0; i < T; ++i) {
      for (int64_t j = 0; j < T; ++j) {
        same += i / step == j / step;
        causal += j <= i && i / step == j / step;
      }
    }
    EXPECT_DOUBLE_EQ(SameCellShare(T, step, false),
                     static_cast<double>(same) / static_cast<double>(T * T));
    EXPECT_DOUBLE_EQ(SameCellShare(T, step, true),
                     static_cast<double>(causal) / static_cast<double>(T * (T + 1) / 2));
    if (T % step == 0) {
      EXPECT_DOUBLE_EQ(SameCellShare(T, step, true),
                       static_cast<double>(step + 1) / static_cast<double>(T + 1));
    }
  }
}

// (f) E(S^(l))^2 over causal pairs of 16 tokens in cells of 4, independent elliptical rows.
TEST(Correction, LevelSecondMomentOverCausalPairs) {
  Setting set(39);
  const int64_t sequences = 60000;
  const at::Tensor rows =
      at::mm(set.sampler.Mixture(4 * sequences, kWidth), set.mix).view({sequences, 4, kWidth});
  const at::Tensor coarse = at::einsum("nia,ab,njb->nij", {rows, set.M, rows}).square();
  const at::Tensor cell = at::arange(16, at::kLong).floor_divide(4);
  const at::Tensor full = coarse.index_select(1, cell).index_select(2, cell).tril();
  const at::Tensor mean = full.sum({1, 2}) / (16 * 17 / 2);
  const double gaussian = GaussianSecondMoment(set.M, set.sigma);
  const double independent = IndependentSecondMoment(set.M, set.sigma, set.sigma);
  const double share = SameCellShare(16, 4, true);
  EXPECT_TRUE(Within(mean, LevelSecondMoment(share, 1, gaussian, independent)));
  EXPECT_FALSE(Within(mean, LevelSecondMoment(share, 0, gaussian, independent)));
}

// (f) Put into 3.2: sqrt(E_H(L)) <= sum_{l >= L} |a_l| sqrt(kappa_l) |A_l|, of any law, tokens that
// depend on each other included, every level with its own second moments, about 0. 40 rows of 30
// keys.
TEST(Correction, BoundsTheHierarchicalTerm) {
  constexpr int64_t kTokens = 30, kQueries = 40;
  constexpr size_t kLevels = 4;
  Sampler sampler(40);
  std::vector<at::Tensor> scores;  // [rows, keys]
  std::vector<double> bounds;
  at::Tensor target;
  for (size_t l = 0; l < kLevels; ++l) {
    const at::Tensor keys = Skewed(sampler, kTokens, kWidth) + sampler.Normal({kWidth});
    const at::Tensor queries =
        keys.narrow(0, 0, 10).repeat({4, 1}) + 0.1 * Skewed(sampler, kQueries, kWidth);
    const at::Tensor M = sampler.Normal({kWidth, kWidth});
    scores.push_back(at::mm(at::mm(queries, M), keys.t()));
    const at::Tensor sigma_x = at::mm(queries.t(), queries) / kQueries;
    const at::Tensor sigma_y = at::mm(keys.t(), keys) / kTokens;
    const double a = sampler.Normal({1}).item<double>();
    const double kappa = std::sqrt(Kappa(queries, sigma_x) * Kappa(keys, sigma_y));
    bounds.push_back(std::abs(a) * std::sqrt(kappa) * OperatorNorm(M, sigma_x, sigma_y));
    target = l == 0 ? a * scores[l] : target + a * scores[l];
  }
  const auto term = [&](size_t levels, bool centred) {
    const auto column = [&](const at::Tensor& x) {
      return (centred ? x - x.mean(1, /*keepdim=*/true) : x).flatten();
    };
    std::vector<at::Tensor> columns;
    for (const at::Tensor& x : scores) columns.push_back(column(x));
    const at::Tensor u = at::stack(columns, 1).narrow(1, 0, static_cast<int64_t>(levels));
    const at::Tensor wanted = column(target);
    return Decompose(wanted, wanted * 0, u, u).hierarchical / static_cast<double>(wanted.numel());
  };
  for (size_t L = 0; L < kLevels; ++L) {
    double bound = 0;
    for (size_t l = L; l < kLevels; ++l) bound += bounds[l];
    EXPECT_LE(std::sqrt(term(L, false)), bound) << L;
    EXPECT_GT(term(L, false), 0);
    // Centring the rows only lowers the left side.
    EXPECT_LT(term(L, true), term(L, false)) << L;
  }
  EXPECT_LE(term(kLevels, false), 1e-18 * term(0, false));
}

// The same with the exact second moment of elliptical tokens, and not without its correction: one
// token in both places, a single level.
TEST(Correction, BoundOfTheHierarchicalTermNeedsTheCorrection) {
  Setting set(41);
  const at::Tensor x = set.Elliptical(), scores = Scores(x, set.M, x);
  const double a = 0.7, n = static_cast<double>(kRows);
  const at::Tensor target = a * scores, none = scores.unsqueeze(1).narrow(1, 0, 0);
  const double measured = Decompose(target, target * 0, none, none).hierarchical / n;
  const double gaussian = GaussianSecondMoment(set.M, set.sigma);
  EXPECT_LE(std::sqrt(measured), a * std::sqrt(2 * gaussian) * 1.02);  // 1.02: of a sample
  EXPECT_GT(std::sqrt(measured), a * std::sqrt(gaussian) * 1.2);
}

}  // namespace
}  // namespace hkt::analysis
