#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cstdint>

// Samples of known laws for tests of estimators, in double, of a seed of their own, and the one
// rule by which a sample mean agrees with its expectation.

namespace hkt::analysis {

class Sampler {
 public:
  explicit Sampler(uint64_t seed);

  at::Tensor Normal(at::IntArrayRef shape);
  at::Tensor Uniform(at::IntArrayRef shape);      // [0, 1)
  at::Tensor Exponential(at::IntArrayRef shape);  // mean 1
  // [n, d], covariance I, elliptical: a Gaussian times sqrt(v), v = 1/2 (0.8) or 3 (0.2); gamma
  // = 1.
  at::Tensor Mixture(int64_t n, int64_t d);
  // [n, d], multivariate t with `freedom` > 4 degrees: covariance I freedom/(freedom - 2), gamma =
  // 2/(freedom - 4).
  at::Tensor StudentT(int64_t n, int64_t d, double freedom);
  // [d, d], uniform over the orthogonal matrices.
  at::Tensor Haar(int64_t d);
  at::Tensor Permutation(int64_t n);

 private:
  at::Generator generator_;
};

// x_i^T M y_i for every row: [n, d], [n, d] -> [n].
at::Tensor Scores(const at::Tensor& x, const at::Tensor& M, const at::Tensor& y);

// The mean of independent samples is within `errors` standard errors of the expectation, and these
// are above 0 and finite.
::testing::AssertionResult Within(const at::Tensor& samples, double expected, double errors = 5);

// |got - want| <= relative |want|, NaN fails.
::testing::AssertionResult Near(double got, double want, double relative);

}  // namespace hkt::analysis
