#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hkt::ops {

// Depthwise-separable causal convolution of stride 1, the branch of a hybrid head: k - 1 zeros on
// the left, output i reads x at i - (k-1) … i.
//   x [B, T, d], depthwise_weight [d, 1, k], depthwise_bias [d], pointwise_weight [d, d],
//   pointwise_bias [d] -> [B, T, d]
// Written with k slices: on a CPU two to four times faster than conv1d with groups.
at::Tensor CausalSeparableConv(const at::Tensor& x, const at::Tensor& depthwise_weight,
                               const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                               const at::Tensor& pointwise_bias);

// Repeats every position s^level times along dimension `dim` and cuts to T: the coarse row under
// every token.
at::Tensor RepeatToFull(const at::Tensor& x, int64_t repeats, int64_t dim, const c10::SymInt& T);

}  // namespace hkt::ops
