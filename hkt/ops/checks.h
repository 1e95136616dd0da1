#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace hkt::ops {

// Checks of the arguments of hkt::attention, shared by every kernel of it: list lengths first (an
// index into a TensorList is unchecked in release builds), then ranks, sizes, types and devices.
// Throws c10::Error with the argument's name, what it got and what it needs. Sizes stay symbolic,
// so that a compiled graph serves every T. Types must be equal, as kernels read memory by them;
// only multiscale_attention lets them differ under autocast, where hkt::attention then casts.
enum class Types { kEqual, kAnyUnderAutocast };
void CheckAttention(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                    int64_t stride, const std::optional<at::Tensor>& lengths,
                    Types types = Types::kEqual);

// And what its backward pass adds.
void CheckAttentionBackward(const at::Tensor& d_out, at::TensorList queries, at::TensorList keys,
                            const at::Tensor& value, const at::Tensor& out, const at::Tensor& lse,
                            int64_t stride, const std::optional<at::Tensor>& lengths);

// float32, or float64 for double inputs: of lse, sums and norms.
at::ScalarType ExactType(at::ScalarType type);

// The same for hkt::downsample and its backward pass.
void CheckDownsample(const at::Tensor& x, const at::Tensor& depthwise_weight,
                     const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                     const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                     const at::Tensor& norm_bias, int64_t stride);
void CheckDownsampleBackward(const at::Tensor& d_out, const at::Tensor& x,
                             const at::Tensor& depthwise_weight, const at::Tensor& depthwise_bias,
                             const at::Tensor& pointwise_weight, const at::Tensor& pointwise_bias,
                             const at::Tensor& norm_weight, const at::Tensor& norm_bias,
                             int64_t stride);

// The same for hkt::depthwise_conv and its backward pass.
void CheckDepthwiseConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        int64_t stride);
void CheckDepthwiseConvBackward(const at::Tensor& d_out, const at::Tensor& x,
                                const at::Tensor& weight, int64_t stride);

void CheckDropout(const at::Tensor& x, const at::Tensor& seed, double p);

// What hkt::multiscale_attention adds to hkt::attention.
void CheckMultiscale(at::TensorList queries, const at::Tensor& value,
                     const at::Tensor& level_logits, const std::optional<at::Tensor>& gate_logits,
                     at::TensorList branches);

}  // namespace hkt::ops
