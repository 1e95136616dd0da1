#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace hkt::ops {

// Checks of the arguments of hkt::attention, shared by every kernel of it: list lengths first (an
// index into a TensorList is unchecked in release builds), then ranks, sizes, types and devices.
// Throws c10::Error with the argument's name, what it got and what it needs. Sizes stay symbolic,
// so that a compiled graph serves every T.
void CheckAttention(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                    int64_t stride, const std::optional<at::Tensor>& lengths);

// The same for hkt::downsample.
void CheckDownsample(const at::Tensor& x, const at::Tensor& depthwise_weight,
                     const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                     const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                     const at::Tensor& norm_bias, int64_t stride);

// And what hkt::multiscale_attention adds to hkt::attention.
void CheckMultiscale(at::TensorList queries, const at::Tensor& value,
                     const at::Tensor& level_logits, const std::optional<at::Tensor>& gate_logits,
                     at::TensorList branches);

}  // namespace hkt::ops
