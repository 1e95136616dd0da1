#include "hkt/analysis/moments.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>

namespace hkt::analysis {

void Moments::Add(const at::Tensor& rows) {
  const auto n = static_cast<double>(rows.size(0));
  if (n == 0) return;
  const at::Tensor sum = rows.sum(0), outer = at::matmul(rows.t(), rows);
  const at::Tensor between = at::outer(sum, sum) / n;
  n_ += rows.size(0);
  sum_ = sum_.defined() ? sum_ + sum : sum;
  outer_ = outer_.defined() ? outer_ + outer : outer;
  between_ = between_.defined() ? between_ + between : between;
}

at::Tensor Moments::Mean() const { return sum_ / static_cast<double>(n_); }

at::Tensor Moments::Covariance() const {
  const at::Tensor mean = Mean();
  return outer_ / static_cast<double>(n_) - at::outer(mean, mean);
}

at::Tensor Moments::WithinCovariance() const {
  return (outer_ - between_) / static_cast<double>(n_);
}

}  // namespace hkt::analysis
