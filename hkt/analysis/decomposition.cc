#include "hkt/analysis/decomposition.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/mv.h>

#include "hkt/analysis/least_squares.h"
#include "hkt/base/error.h"

namespace hkt::analysis {
namespace {

double Square(const at::Tensor& x) { return at::dot(x, x).item<double>(); }

}  // namespace

double ErrorTerms::gap() const {
  const double difference = sum() - total;
  return difference == 0 ? 0 : difference / total;
}

ErrorTerms Decompose(const at::Tensor& target, const at::Tensor& model, const at::Tensor& decimated,
                     const at::Tensor& undecimated) {
  const Fit u = LeastSquares(decimated, target);
  const Fit v = LeastSquares(at::cat({decimated, undecimated}, 1), target);
  ErrorTerms terms;
  terms.hierarchical = Square(target - v.fitted);
  terms.quantisation = Square(v.fitted - u.fitted);
  terms.optimisation = Square(u.fitted - model);
  terms.total = Square(target - model);
  terms.rank_u = u.rank;
  terms.rank_v = v.rank;
  return terms;
}

OptimisationParts SplitOptimisation(const at::Tensor& held_out, const at::Tensor& held_out_target,
                                    const at::Tensor& train, const at::Tensor& train_target,
                                    const at::Tensor& coefficients) {
  const at::Tensor best = LeastSquares(held_out, held_out_target).fitted;
  const at::Tensor fit = LeastSquares(train, train_target).coefficients;
  const at::Tensor fitted = at::mv(held_out, fit), model = at::mv(held_out, coefficients);
  const at::Tensor on_train = at::mv(train, fit), model_on_train = at::mv(train, coefficients);
  OptimisationParts parts;
  parts.finite_sample = Square(best - fitted);
  parts.training = Square(fitted - model);
  parts.cross = 2 * at::dot(best - fitted, fitted - model).item<double>();
  parts.train_excess = Square(train_target - model_on_train) - Square(train_target - on_train);
  parts.train_distance = Square(model_on_train - on_train);
  return parts;
}

}  // namespace hkt::analysis
