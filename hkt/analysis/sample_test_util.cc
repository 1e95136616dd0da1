#include "hkt/analysis/sample_test_util.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_standard_gamma.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/where.h>

#include <cmath>

namespace hkt::analysis {

Sampler::Sampler(uint64_t seed) : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {}

at::Tensor Sampler::Normal(at::IntArrayRef shape) {
  return at::randn(shape, generator_, at::TensorOptions(at::kDouble));
}

at::Tensor Sampler::Uniform(at::IntArrayRef shape) {
  return at::rand(shape, generator_, at::TensorOptions(at::kDouble));
}

at::Tensor Sampler::Exponential(at::IntArrayRef shape) { return -(1 - Uniform(shape)).log(); }

at::Tensor Sampler::Mixture(int64_t n, int64_t d) {
  const at::Tensor rare = Uniform({n, 1}).ge(0.8);
  return Normal({n, d}) * at::where(rare, std::sqrt(3.0), std::sqrt(0.5));
}

at::Tensor Sampler::StudentT(int64_t n, int64_t d, double freedom) {
  const at::Tensor half = at::full({n, 1}, freedom / 2, at::kDouble);
  return Normal({n, d}) / (2 * at::_standard_gamma(half, generator_) / freedom).sqrt();
}

at::Tensor Sampler::Haar(int64_t d) {
  const auto [q, r] = at::linalg_qr(Normal({d, d}));
  return q * r.diagonal().sign();
}

at::Tensor Sampler::Permutation(int64_t n) {
  return at::randperm(n, generator_, at::TensorOptions(at::kLong));
}

at::Tensor Scores(const at::Tensor& x, const at::Tensor& M, const at::Tensor& y) {
  return (at::mm(x, M) * y).sum(1);
}

::testing::AssertionResult Within(const at::Tensor& samples, double expected, double errors) {
  const double mean = samples.mean().item<double>();
  const double error =
      samples.std().item<double>() / std::sqrt(static_cast<double>(samples.numel()));
  if (error > 0 && std::isfinite(error) && std::abs(mean - expected) <= errors * error) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << "mean " << mean << ", expected " << expected << ", standard error " << error << ": "
         << (mean - expected) / error << " of them apart";
}

::testing::AssertionResult Near(double got, double want, double relative) {
  if (std::abs(got - want) <= relative * std::abs(want)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << got << ", expected " << want << " within " << relative << " of it";
}

}  // namespace hkt::analysis
