// The identity of the three error terms, what breaks it, and the optimisation term's parts
// (docs/theory.md, 3.1 and 3.4).

#include "hkt/analysis/decomposition.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <vector>

#include "hkt/analysis/least_squares.h"
#include "hkt/analysis/sample_test_util.h"
#include "hkt/base/error.h"

namespace hkt::analysis {
namespace {

using ::testing::HasSubstr;

// Errors of a projection in double: some roundings of n terms, relative to what is projected.
constexpr double kExact = 1e-9;

struct Problem {
  explicit Problem(uint64_t seed, int64_t n = 500) : sampler(seed) {
    decimated = sampler.Normal({n, 4});
    // One column in common with U, as level 0 has, and others that correlate with it.
    undecimated = at::cat({decimated.narrow(1, 0, 1), decimated + sampler.Normal({n, 4})}, 1);
    coefficients = sampler.Normal({4});
    model = at::mv(decimated, coefficients);
    target = at::mv(undecimated, sampler.Normal({5})) + sampler.Normal({n});
  }
  Sampler sampler;
  at::Tensor decimated, undecimated, coefficients, model, target;
};

TEST(LeastSquares, FitsAndDropsWhatDepends) {
  Sampler sampler(1);
  const at::Tensor F = sampler.Normal({50, 3}), y = sampler.Normal({50});
  const at::Tensor doubled = at::cat({F, F.narrow(1, 0, 2)}, 1);
  const Fit fit = LeastSquares(F, y), twice = LeastSquares(doubled, y);
  EXPECT_EQ(fit.rank, 3);
  EXPECT_EQ(twice.rank, 3);
  EXPECT_LE((fit.fitted - twice.fitted).abs().max().item<double>(), 1e-12);
  EXPECT_LE(at::mv(F.t(), y - fit.fitted).abs().max().item<double>(), 1e-12);  // orthogonal
  EXPECT_LE((at::mv(doubled, twice.coefficients) - fit.fitted).abs().max().item<double>(), 1e-12);
  EXPECT_EQ(LeastSquares(at::zeros({50, 2}, at::kDouble), y).rank, 0);
  EXPECT_EQ(LeastSquares(at::zeros({50, 0}, at::kDouble), y).fitted.abs().max().item<double>(), 0);
}

TEST(RowStack, KeepsInnerProducts) {
  Sampler sampler(2);
  const at::Tensor rows = sampler.Normal({1000, 6});
  RowStack stack(6), rest(6);
  for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 2}, {2, 2}, {2, 300}})
    stack.Add(rows.slice(0, begin, end));
  rest.Add(rows.slice(0, 300));
  stack.Add(rest);
  EXPECT_EQ(stack.count(), 1000);
  const at::Tensor means = stack.Means();
  EXPECT_LE((at::mm(means.t(), means) - at::mm(rows.t(), rows) / 1000).abs().max().item<double>(),
            1e-13);
}

TEST(RowStack, SaysWhatIsWrong) {
  const auto message = [](const auto& job) -> std::string {
    try {
      job();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  RowStack stack(3);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(message([&] { stack.Means(); }), HasSubstr("no rows"));
  EXPECT_THAT(message([&] {
                stack.Add(at::zeros({2, 4}, at::kDouble));
              }),
              HasSubstr("expected [n, 3]"));
  EXPECT_THAT(message([&] {
                stack.Add(at::zeros({2, 3}, at::kDouble) + nan);
              }),
              HasSubstr("not finite"));
  EXPECT_THAT(message([&] { stack.Add(RowStack(2)); }), HasSubstr("expected 3"));
}

TEST(Decomposition, TermsAddUpToTheError) {
  for (const uint64_t seed : {3, 4, 5}) {
    const Problem p(seed);
    const ErrorTerms terms = Decompose(p.target, p.model, p.decimated, p.undecimated);
    EXPECT_LE(std::abs(terms.gap()), kExact);
    EXPECT_EQ(terms.rank_u, 4);
    EXPECT_EQ(terms.rank_v, 8);  // 9 columns, one of them twice
    EXPECT_GT(terms.hierarchical, 0);
    EXPECT_GT(terms.quantisation, 0);
    EXPECT_GT(terms.optimisation, 0);
  }
}

TEST(Decomposition, InChunksItIsTheSame) {
  const Problem p(6, 3000);
  const at::Tensor all =
      at::cat({p.decimated, p.undecimated, p.target.unsqueeze(1), p.model.unsqueeze(1)}, 1);
  RowStack stack(all.size(1));
  for (int64_t i = 0; i < 3000; i += 700)
    stack.Add(all.slice(0, i, std::min<int64_t>(3000, i + 700)));
  const at::Tensor m = stack.Means();
  const ErrorTerms chunked =
      Decompose(m.select(1, 9), m.select(1, 10), m.narrow(1, 0, 4), m.narrow(1, 4, 5));
  const ErrorTerms whole = Decompose(p.target, p.model, p.decimated, p.undecimated);
  EXPECT_TRUE(Near(3000 * chunked.hierarchical, whole.hierarchical, kExact));
  EXPECT_TRUE(Near(3000 * chunked.quantisation, whole.quantisation, kExact));
  EXPECT_TRUE(Near(3000 * chunked.optimisation, whole.optimisation, kExact));
  EXPECT_TRUE(Near(3000 * chunked.total, whole.total, kExact));
}

// The conditions of the identity: a model outside U, and projections that were fitted elsewhere.
TEST(Decomposition, BrokenConditionsBreakIt) {
  const Problem p(7);
  const ErrorTerms outside =
      Decompose(p.target, p.model + p.undecimated.select(1, 3), p.decimated, p.undecimated);
  EXPECT_GT(std::abs(outside.gap()), 1e-3);

  Problem other(8);
  const at::Tensor u =
      at::mv(p.decimated, LeastSquares(other.decimated, other.target).coefficients);
  const at::Tensor v =
      at::mv(p.undecimated, LeastSquares(other.undecimated, other.target).coefficients);
  const auto square = [](const at::Tensor& x) { return (x * x).sum().item<double>(); };
  const double total = square(p.target - p.model);
  EXPECT_GT(std::abs(square(p.target - v) + square(v - u) + square(u - p.model) - total),
            1e-3 * total);
}

TEST(Decomposition, ATargetOfTheModelItselfHasNoError) {
  const Problem p(9);
  const ErrorTerms terms = Decompose(p.model, p.model, p.decimated, p.undecimated);
  EXPECT_LE(terms.sum(), 1e-20 * p.model.square().sum().item<double>());
}

// More columns never raise E_H; on the batch of the fit it is low by about 1 - p/n.
TEST(Decomposition, InSampleBias) {
  Sampler sampler(10);
  std::vector<double> h;
  for (int i = 0; i < 3000; ++i) {  // noise alone: E_H = 1 per row
    const at::Tensor y = sampler.Normal({40});
    h.push_back(
        Decompose(y, at::zeros({40}, at::kDouble), sampler.Normal({40, 3}), sampler.Normal({40, 5}))
            .hierarchical /
        40);
  }
  EXPECT_TRUE(Within(at::tensor(h, at::kDouble), 1 - 8.0 / 40));
}

TEST(Optimisation, PartsAddUp) {
  Problem held(11), train(12);
  const OptimisationParts parts = SplitOptimisation(held.decimated, held.target, train.decimated,
                                                    train.target, held.coefficients);
  const double whole =
      Decompose(held.target, held.model, held.decimated, held.undecimated).optimisation;
  EXPECT_TRUE(Near(parts.sum(), whole, kExact));
  EXPECT_TRUE(Near(parts.train_excess, parts.train_distance, kExact));
  EXPECT_GT(parts.training, 0);
  // Fitted to the held-out batch itself, nothing of the finite sample is left.
  const OptimisationParts own = SplitOptimisation(held.decimated, held.target, held.decimated,
                                                  held.target, held.coefficients);
  EXPECT_LE(own.finite_sample, 1e-20 * whole);
  EXPECT_TRUE(Near(own.training, whole, kExact));
}

// The finite-sample part of p Gaussian features and n independent samples is sigma^2 p / (n - p -
// 1) on average, and not of heavy tails.
TEST(Optimisation, FiniteSampleOfGaussianFeatures) {
  Sampler sampler(13);
  const double noise = 0.49;
  const at::Tensor none = at::zeros({6}, at::kDouble);
  for (const bool gaussian : {true, false}) {
    for (const int64_t n : {20, 40, 80}) {
      std::vector<double> excess;
      for (int i = 0; i < 3000; ++i) {
        const at::Tensor F = gaussian ? sampler.Normal({n, 6}) : sampler.StudentT(n, 6, 3);
        // True coefficients 0 and features of covariance I (3 I for the t): the excess of the fit.
        const Fit fit = LeastSquares(F, std::sqrt(noise) * sampler.Normal({n}));
        excess.push_back(fit.coefficients.square().sum().item<double>() * (gaussian ? 1 : 3));
      }
      const double expected = noise * 6 / static_cast<double>(n - 6 - 1);
      const auto within = Within(at::tensor(excess, at::kDouble), expected);
      EXPECT_EQ(static_cast<bool>(within), gaussian) << within.message() << ", n = " << n;
    }
  }
}

}  // namespace
}  // namespace hkt::analysis
