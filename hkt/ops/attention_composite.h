#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

namespace hkt::ops {

// hkt::attention_forward and hkt::attention_backward from PyTorch's own operators: on every device
// but CPU, and on the CPU for float64. Memory O(T): PyTorch's flash kernels where they take the
// call, else rows in chunks.
std::tuple<at::Tensor, at::Tensor> AttentionForwardComposite(
    at::TensorList queries, at::TensorList keys, const at::Tensor& value, int64_t stride,
    std::optional<double> scale, bool causal, const std::optional<at::Tensor>& lengths);

std::vector<at::Tensor> AttentionBackwardComposite(const at::Tensor& d_out, at::TensorList queries,
                                                   at::TensorList keys, const at::Tensor& value,
                                                   const at::Tensor& out, const at::Tensor& lse,
                                                   int64_t stride, std::optional<double> scale,
                                                   bool causal,
                                                   const std::optional<at::Tensor>& lengths);

}  // namespace hkt::ops
