// hkt::downsample as a composite of PyTorch's own operators.

#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <torch/library.h>

#include "hkt/ops/causal_conv.h"
#include "hkt/ops/checks.h"

namespace hkt::ops {
namespace {

at::Tensor DownsampleComposite(const at::Tensor& x, const at::Tensor& depthwise_weight,
                               const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                               const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                               const at::Tensor& norm_bias, int64_t stride, double eps) {
  CheckDownsample(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                  norm_weight, norm_bias, stride);
  const at::Tensor y = CausalSeparableConv(x, depthwise_weight, depthwise_bias, pointwise_weight,
                                           pointwise_bias, stride);
  return at::gelu(at::layer_norm_symint(y, {x.sym_size(2)}, norm_weight, norm_bias, eps));
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, CompositeImplicitAutograd, m) { m.impl("downsample", DownsampleComposite); }

}  // namespace hkt::ops
