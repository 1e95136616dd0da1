#include "hkt/ops/padding.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/where.h>

namespace hkt::ops {

at::Tensor ValidRows(const at::Tensor& lengths, const c10::SymInt& positions, int64_t step) {
  const at::Tensor first_token = at::arange(0, positions * step, step, lengths.options());
  return first_token.lt(lengths.unsqueeze(1));
}

at::Tensor ZeroPadding(const at::Tensor& x, const at::Tensor& valid) {
  return at::where(valid, x, 0);
}

}  // namespace hkt::ops
