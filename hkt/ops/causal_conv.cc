#include "hkt/ops/causal_conv.h"

#include <ATen/ops/addcmul.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/slice.h>

#include "hkt/base/dims.h"

namespace hkt::ops {

at::Tensor CausalSeparableConv(const at::Tensor& x, const at::Tensor& depthwise_weight,
                               const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                               const at::Tensor& pointwise_bias) {
  const int64_t k = depthwise_weight.size(2);
  const c10::SymInt T = x.sym_size(1);
  const at::Tensor padded = k > 1 ? at::constant_pad_nd(x, {0, 0, k - 1, 0}) : x;
  at::Tensor y = depthwise_bias;
  for (int64_t a = 0; a < k; ++a) {
    // Row i + a of the padded input is row i - (k-1) + a of x.
    const at::Tensor tap = at::slice_symint(padded, 1, a, T + a);
    y = at::addcmul(y, tap, depthwise_weight.select(2, a).squeeze(1));
  }
  return at::linear(y, pointwise_weight, pointwise_bias);
}

at::Tensor RepeatToFull(const at::Tensor& x, int64_t repeats, int64_t dim, const c10::SymInt& T) {
  if (repeats == 1) return x;
  c10::SymDimVector expanded(x.sym_sizes().begin(), x.sym_sizes().end());
  if (x.sym_size(dim) == 1) {  // one position under every token, however large s^l is
    expanded[dim] = T;
    return x.expand_symint(expanded);
  }
  if (T.is_symbolic()) {
    // While tracing. The cut below would make a guard, and two graphs, of whether T is a multiple.
    const at::Tensor token = at::arange(T, x.options().dtype(at::kLong));
    return x.index_select(dim, token.div(repeats, "floor"));
  }
  c10::SymDimVector merged = expanded;
  expanded.insert(expanded.begin() + dim + 1, repeats);
  merged[dim] = merged[dim] * repeats;
  const at::Tensor repeated = x.unsqueeze(dim + 1).expand_symint(expanded).reshape_symint(merged);
  return at::slice_symint(repeated, dim, 0, T, 1);
}

}  // namespace hkt::ops
