#include "hkt/analysis/least_squares.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "hkt/base/error.h"

namespace hkt::analysis {

RowStack::RowStack(int64_t columns) : columns_(columns), r_(at::zeros({0, columns}, at::kDouble)) {}

void RowStack::Add(const at::Tensor& rows) {
  Check(rows.dim() == 2 && rows.size(1) == columns_ && rows.scalar_type() == at::kDouble,
        "rows have shape ", rows.sizes(), ", expected [n, ", columns_, "] in double");
  if (rows.size(0) == 0) return;
  Check(at::isfinite(rows).all().item<bool>(),
        "a feature of a score is not finite: the run's weights hold NaN or infinity");
  r_ = std::get<1>(at::linalg_qr(at::cat({r_, rows}), "r"));
  count_ += rows.size(0);
}

void RowStack::Add(const RowStack& other) {
  Check(other.columns_ == columns_, "rows of ", other.columns_, " columns, expected ", columns_);
  r_ = std::get<1>(at::linalg_qr(at::cat({r_, other.r_}), "r"));
  count_ += other.count_;
}

at::Tensor RowStack::Means() const {
  Check(count_ > 0, "no rows: there is nothing to fit");
  return r_ / std::sqrt(static_cast<double>(count_));
}

Fit LeastSquares(const at::Tensor& features, const at::Tensor& target, double tolerance) {
  Check(features.dim() == 2 && target.dim() == 1 && features.size(0) == target.size(0),
        "features have shape ", features.sizes(), " and the target ", target.sizes(),
        ", expected [n, p] and [n]");
  Fit fit;
  if (features.numel() == 0) {
    fit.coefficients = at::zeros({features.size(1)}, at::kDouble);
    fit.fitted = at::zeros_like(target);
    return fit;
  }
  const auto [u, s, vt] = at::linalg_svd(features, /*full_matrices=*/false);
  const double largest = s[0].item<double>();
  fit.rank = largest > 0 ? s.gt(tolerance * largest).sum().item<int64_t>() : 0;
  const at::Tensor along = at::mv(u.t(), target).slice(0, 0, fit.rank);
  fit.fitted = at::mv(u.slice(1, 0, fit.rank), along);
  fit.coefficients = at::mv(vt.slice(0, 0, fit.rank).t(), along / s.slice(0, 0, fit.rank));
  return fit;
}

}  // namespace hkt::analysis
