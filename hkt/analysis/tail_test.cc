// Tails of the hierarchical term (docs/theory.md, 3.2).

#include "hkt/analysis/tail.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hkt/analysis/decomposition.h"
#include "hkt/analysis/sample_test_util.h"

namespace hkt::analysis {
namespace {

// E_H(L) of S* = sum_l a_l St_l when the first L columns are at hand.
double Hierarchical(const at::Tensor& columns, const at::Tensor& target, int64_t L) {
  const at::Tensor u = columns.narrow(1, 0, L);
  return Decompose(target, target * 0, u, u).hierarchical;
}

std::vector<double> Terms(const at::Tensor& columns, const std::vector<double>& a) {
  std::vector<double> terms;
  for (size_t l = 0; l < a.size(); ++l) {
    const at::Tensor column = columns.select(1, static_cast<int64_t>(l));
    terms.push_back(std::abs(a[l]) * std::sqrt(column.square().sum().item<double>()));
  }
  return terms;
}

// A bound on E_H(L) if t_l <= C rho^l for all l.
double GeometricBound(double C, double rho, int64_t L) {
  return C * C * std::pow(rho, 2 * static_cast<double>(L)) / ((1 - rho) * (1 - rho));
}

// E_H(L) if t_l = C rho^l for all l and the St_l are orthogonal.
double OrthogonalTail(double C, double rho, int64_t L) {
  return C * C * std::pow(rho, 2 * static_cast<double>(L)) / (1 - rho * rho);
}

TEST(Tail, BoundsEveryTarget) {
  Sampler sampler(1);
  for (int i = 0; i < 20; ++i) {
    // Columns that share a part, so that they are far from orthogonal.
    const at::Tensor columns = sampler.Normal({200, 6}) + 2 * sampler.Normal({200, 1});
    std::vector<double> a;
    for (int l = 0; l < 6; ++l) a.push_back(sampler.Normal({1}).item<double>());
    const at::Tensor target = at::mv(columns, at::tensor(a, at::kDouble));
    const std::vector<double> bounds = TailBounds(Terms(columns, a));
    ASSERT_EQ(bounds.size(), 7u);
    for (int64_t L = 0; L < 6; ++L) {
      const double measured = Hierarchical(columns, target, L);
      EXPECT_LE(measured, bounds[static_cast<size_t>(L)] * (1 + 1e-9));
      EXPECT_GT(measured, 0);
    }
    EXPECT_EQ(bounds[6], 0);
    EXPECT_LE(Hierarchical(columns, target, 6), 1e-18);
  }
}

TEST(Tail, GeometricTermsDecayAtTheirRate) {
  Sampler sampler(2);
  const double rho = 0.6;
  const auto columns = std::get<0>(at::linalg_qr(sampler.Normal({300, 30})));  // orthonormal
  std::vector<double> a;
  for (int l = 0; l < 30; ++l) a.push_back(2 * std::pow(rho, l));
  const at::Tensor target = at::mv(columns, at::tensor(a, at::kDouble));
  const std::vector<double> terms = Terms(columns, a);
  EXPECT_NEAR(DecayRate(terms), rho, 1e-12);
  for (const int64_t L : {0, 1, 2, 5}) {
    const double measured = Hierarchical(columns, target, L);
    EXPECT_TRUE(Near(measured, OrthogonalTail(2, rho, L), 1e-9));  // 0.6^60 of it is cut off
    EXPECT_LE(measured, GeometricBound(2, rho, L));
  }
}

// Without orthogonality the equality fails while the bound holds; without (G) the bound fails.
TEST(Tail, BrokenConditions) {
  Sampler sampler(3);
  const double rho = 0.6;
  const at::Tensor one = sampler.Normal({300, 1}), alike = one + 0.01 * sampler.Normal({300, 12});
  const at::Tensor columns = alike / alike.square().sum(0, /*keepdim=*/true).sqrt();
  std::vector<double> a;
  for (int l = 0; l < 12; ++l) a.push_back(std::pow(rho, l));
  const at::Tensor target = at::mv(columns, at::tensor(a, at::kDouble));
  EXPECT_GT(Hierarchical(columns, target, 0), 2 * OrthogonalTail(1, rho, 0));
  EXPECT_LE(Hierarchical(columns, target, 0), GeometricBound(1, rho, 0));

  const auto apart = std::get<0>(at::linalg_qr(sampler.Normal({300, 12})));
  a[5] = 3;  // not below rho^5
  EXPECT_GT(Hierarchical(apart, at::mv(apart, at::tensor(a, at::kDouble)), 5),
            GeometricBound(1, rho, 5));
}

TEST(Tail, RateNeedsTwoTerms) {
  EXPECT_TRUE(std::isnan(DecayRate(std::vector<double>{1.0, 0.0})));
  EXPECT_NEAR(DecayRate(std::vector<double>{1.0, 0.0, 0.25}), 0.5, 1e-12);  // levels 0 and 2
}

}  // namespace
}  // namespace hkt::analysis
