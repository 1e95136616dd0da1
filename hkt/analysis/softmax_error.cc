#include "hkt/analysis/softmax_error.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

namespace hkt::analysis {

at::Tensor KlBoundOfRange(const at::Tensor& range) { return range.square() / 8; }

at::Tensor KlBoundOfVariance(const at::Tensor& variance, const at::Tensor& range) {
  // Below 1e-4 the quotient's own rounding is larger than B/6 + …, the rest of its series.
  const at::Tensor small = range < 1e-4;
  const at::Tensor safe = at::where(small, 1.0, range).clamp_max(700);
  return variance * at::where(small, 0.5 + range / 6, (at::expm1(safe) - safe) / (safe * safe));
}

at::Tensor L1BoundOfRange(const at::Tensor& range) { return range / 2; }

}  // namespace hkt::analysis
