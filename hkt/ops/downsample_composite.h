#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace hkt::ops {

// hkt::downsample and hkt::downsample_backward from PyTorch's own operators: on every device but
// CPU, and on the CPU for float64. Sums, norm and GELU in float32 (float64 for double inputs); the
// product with pointwise_weight in x's type.
at::Tensor DownsampleComposite(const at::Tensor& x, const at::Tensor& depthwise_weight,
                               const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                               const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                               const at::Tensor& norm_bias, int64_t stride, double eps);

std::vector<at::Tensor> DownsampleBackwardComposite(
    const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& depthwise_weight,
    const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
    const at::Tensor& pointwise_bias, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
    int64_t stride, double eps);

}  // namespace hkt::ops
