// Mardia's kurtosis against laws whose value is known, and its error estimates against repetition.

#include "hkt/analysis/kurtosis.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hkt/analysis/sample_test_util.h"
#include "hkt/base/error.h"

namespace hkt::analysis {
namespace {

// Groups of `rows` rows as sequences.
std::vector<at::Tensor> Sequences(const at::Tensor& x, int64_t rows) {
  std::vector<at::Tensor> sequences;
  for (int64_t i = 0; i < x.size(0); i += rows)
    sequences.push_back(x.slice(0, i, std::min(x.size(0), i + rows)));
  return sequences;
}

Mardia Measure(const at::Tensor& x) { return MeasureMardia(Sequences(x, 1000)); }

// The factor (n+1)/(n-1) makes it d(d+2) exactly, with as few as 40 rows.
TEST(Mardia, GaussianRowsHaveTheirExactMean) {
  Sampler sampler(1);
  std::vector<double> corrected, raw;
  for (int i = 0; i < 2500; ++i) {
    const double kappa = Measure(sampler.Normal({40, 3})).kappa;
    corrected.push_back(kappa);
    raw.push_back(kappa * 39 / 41);
  }
  EXPECT_TRUE(Within(at::tensor(corrected, at::kDouble), 15));
  EXPECT_FALSE(Within(at::tensor(raw, at::kDouble), 15));  // the plain mean is biased
}

TEST(Mardia, MultivariateTHasItsClosedForm) {
  Sampler sampler(2);
  for (const double freedom : {12.0, 20.0}) {
    const at::Tensor mix = sampler.Normal({5, 5});
    const Mardia mardia =
        MeasureMardia(Sequences(at::mm(sampler.StudentT(200000, 5, freedom), mix) + 3, 500));
    EXPECT_EQ(mardia.rank, 5);
    EXPECT_EQ(mardia.gaussian, 35);
    const double want = 35 * (1 + 2 / (freedom - 4));
    EXPECT_LE(std::abs(mardia.kappa - want), 5 * mardia.bootstrap_se) << mardia.kappa;
    EXPECT_GT(std::abs(mardia.kappa - 35),
              5 * mardia.bootstrap_se);  // it can tell it from Gaussian
    EXPECT_FALSE(mardia.saturated || mardia.too_few);
  }
}

TEST(Mardia, DoesNotDependOnTheCoordinates) {
  Sampler sampler(3);
  const at::Tensor x = sampler.Exponential({3000, 4});
  const Mardia plain = Measure(x);
  const Mardia moved = Measure(at::mm(x, sampler.Normal({4, 4})) - 7);
  EXPECT_TRUE(Near(moved.kappa, plain.kappa, 1e-9));
  EXPECT_TRUE(Near(moved.bootstrap_se, plain.bootstrap_se, 1e-6));
}

// Elliptical rows: the ridge does not matter. Rows of independent exponentials of unlike scale: the
// plain factor and the one under a large ridge, which sees the largest coordinate most, differ.
TEST(Mardia, TheRidgeTellsEllipticalRows) {
  Sampler sampler(4);
  const at::Tensor mix = sampler.Normal({6, 6});
  for (const double factor : Measure(at::mm(sampler.Mixture(300000, 6), mix)).ridge_factor)
    EXPECT_TRUE(Near(factor, 2, 0.03));
  const at::Tensor scales = at::tensor({1.0, 2.0, 4.0, 30.0}, at::kDouble);
  const Mardia other = Measure(sampler.Exponential({100000, 4}).square() * scales);
  const auto [least, most] =
      std::minmax_element(other.ridge_factor.begin(), other.ridge_factor.end());
  EXPECT_GT(*most / *least, 1.5);
}

// A large ridge is E|x|^4 / (2 tr Sigma^2 + tr(Sigma)^2), the factor over Gaussian W_Q and W_K.
TEST(Mardia, RidgeFactorsAreTheirFormula) {
  Sampler sampler(5);
  const at::Tensor x = sampler.Exponential({400, 3});
  const Mardia mardia = Measure(x);
  const at::Tensor y = x - x.mean(0), sigma = at::mm(y.t(), y) / 400;
  const double ridge = sigma.diagonal().sum().item<double>() / 3;
  const at::Tensor inverse = (sigma + ridge * at::full({3}, 1.0, at::kDouble).diag()).inverse();
  const at::Tensor h = at::mm(sigma, inverse);
  const double trace = h.diagonal().sum().item<double>();
  const double want = Scores(y, inverse, y).square().mean().item<double>() * 401 / 399 /
                      (2 * at::mm(h, h).diagonal().sum().item<double>() + trace * trace);
  EXPECT_TRUE(Near(mardia.ridge_factor[2], want, 1e-9));
}

// gamma >= -2/(d+2) by Jensen; points on a sphere attain it.
TEST(Mardia, TheSphereIsTheLowerEnd) {
  Sampler sampler(6);
  const at::Tensor x = sampler.Normal({100000, 6});
  const Mardia mardia = Measure(x / (x * x).sum(1, /*keepdim=*/true).sqrt());
  EXPECT_NEAR(mardia.gamma, -0.25, 1e-3);
  EXPECT_GE(mardia.kappa, 36.0 * (1 - 1e-12));
}

TEST(Mardia, RowsOutOfALayerNormHaveOneDimensionLess) {
  Sampler sampler(7);
  const Mardia mardia =
      Measure(at::layer_norm(sampler.Normal({5000, 6}), {6}, std::nullopt, std::nullopt, 1e-5));
  EXPECT_EQ(mardia.width, 6);
  EXPECT_EQ(mardia.rank, 5);
  EXPECT_EQ(mardia.gaussian, 35);
  EXPECT_NEAR(mardia.gamma, 5.0 / 7 - 1, 0.01);  // on a sphere of 5 dimensions
}

TEST(Mardia, FewRowsSaturateAndAreFlagged) {
  Sampler sampler(8);
  at::Tensor x = sampler.Normal({60, 3}) / 100;
  x[0] +=
      at::tensor({1e4, 2e4, 3e4}, at::kDouble);  // b is at most r(n-1) = 177, whatever the outlier
  const Mardia mardia = Measure(x);
  EXPECT_LE(mardia.kappa * 59 / 61, 177 * (1 + 1e-9));
  EXPECT_TRUE(mardia.saturated);
  EXPECT_TRUE(mardia.too_few);
  const Mardia tame = Measure(sampler.Normal({60, 3}));
  EXPECT_FALSE(tame.saturated);
  EXPECT_TRUE(tame.too_few);
  EXPECT_FALSE(MeasureMardia(Sequences(sampler.Normal({640, 3}), 10)).too_few);
}

TEST(Mardia, BootstrapOfIndependentGaussianRowsIsTheFormula) {
  Sampler sampler(9);
  const Mardia mardia = MeasureMardia(Sequences(sampler.Normal({20000, 4}), 10));
  EXPECT_NEAR(mardia.gaussian_se, std::sqrt(8 * 24 / 20000.0), 1e-12);
  // 200 resamples know a standard deviation to 5 %.
  EXPECT_TRUE(Near(mardia.bootstrap_se, mardia.gaussian_se, 0.25));
}

// Rows that repeat within a sequence carry no new information: the error grows by sqrt(8), which
// the formula for independent rows does not see.
TEST(Mardia, BootstrapSeesDependentRows) {
  Sampler sampler(10);
  const at::Tensor x = sampler.Normal({1000, 4}).repeat_interleave(8, 0);
  const Mardia mardia = MeasureMardia(Sequences(x, 8));
  EXPECT_TRUE(Near(mardia.bootstrap_se / mardia.gaussian_se, std::sqrt(8.0), 0.25));
}

// Against the whole estimator, computed anew for every resample of the sequences.
TEST(Mardia, BootstrapIsThatOfTheWholeEstimator) {
  Sampler sampler(11);
  const std::vector<at::Tensor> sequences = Sequences(
      (sampler.Mixture(200, 3).repeat_interleave(20, 0) + sampler.Exponential({4000, 3})), 20);
  std::vector<double> kappas;
  for (int resample = 0; resample < 300; ++resample) {
    const at::Tensor drawn = (sampler.Uniform({200}) * 200).to(at::kLong);
    std::vector<at::Tensor> resampled;
    for (int64_t i = 0; i < 200; ++i)
      resampled.push_back(sequences[static_cast<size_t>(drawn[i].item<int64_t>())]);
    kappas.push_back(Measure(at::cat(resampled)).kappa);
  }
  EXPECT_TRUE(Near(MeasureMardia(sequences).bootstrap_se,
                   at::tensor(kappas, at::kDouble).std().item<double>(), 0.3));
}

TEST(Mardia, WithoutRowsIsAnError) {
  using ::testing::HasSubstr;
  const auto message = [](const std::vector<at::Tensor>& sequences) -> std::string {
    try {
      MeasureMardia(sequences);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message({}), HasSubstr("no sequences"));
  EXPECT_THAT(message({at::zeros({0, 3}, at::kDouble)}), HasSubstr("no rows"));
}

// A dead layer: no figure of it, and no end of the analysis either.
TEST(Mardia, EqualRowsHaveNoKurtosis) {
  for (const double value : {0.0, 2.0, 0.1, 0.7, 1.0 / 3}) {
    const std::vector<at::Tensor> equal = {at::full({50, 3}, value, at::kDouble),
                                           at::full({7, 3}, value, at::kDouble)};
    const Mardia mardia = MeasureMardia(equal);
    EXPECT_EQ(mardia.rank, 0);
    EXPECT_EQ(mardia.rows, 57);
    EXPECT_TRUE(std::isnan(mardia.kappa)) << mardia.kappa;
    EXPECT_TRUE(std::isnan(mardia.gamma));
    for (const double factor : mardia.ridge_factor) EXPECT_TRUE(std::isnan(factor));
  }
}

}  // namespace
}  // namespace hkt::analysis
