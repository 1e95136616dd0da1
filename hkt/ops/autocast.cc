// Autocast, on the CPU and on CUDA: queries, keys and value, or x, are cast to autocast's type.
// What is exact stays so: lambda and beta are computed outside (multiscale.cc), the weights of the
// downsampling keep their type, and every kernel sums, norms and exponentiates in float32. float64
// is left alone, as autocast always leaves it.

#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include <optional>

#include "hkt/ops/ops.h"

namespace hkt::ops {
namespace {

template <c10::DeviceType device>
at::Tensor AttentionAutocast(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                             int64_t stride, std::optional<double> scale, bool causal,
                             const std::optional<at::Tensor>& lengths) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType type = at::autocast::get_autocast_dtype(device);
  return attention(at::autocast::cached_cast(type, queries, device),
                   at::autocast::cached_cast(type, keys, device),
                   at::autocast::cached_cast(type, value, device), stride, scale, causal, lengths);
}

template <c10::DeviceType device>
at::Tensor DownsampleAutocast(const at::Tensor& x, const at::Tensor& depthwise_weight,
                              const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                              const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                              const at::Tensor& norm_bias, int64_t stride, double eps) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::Tensor low =
      at::autocast::cached_cast(at::autocast::get_autocast_dtype(device), x, device);
  return downsample(low, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                    norm_weight, norm_bias, stride, eps);
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, AutocastCPU, m) {
  m.impl("attention", AttentionAutocast<c10::DeviceType::CPU>);
  m.impl("downsample", DownsampleAutocast<c10::DeviceType::CPU>);
}

TORCH_LIBRARY_IMPL(hkt, AutocastCUDA, m) {
  m.impl("attention", AttentionAutocast<c10::DeviceType::CUDA>);
  m.impl("downsample", DownsampleAutocast<c10::DeviceType::CUDA>);
}

}  // namespace hkt::ops
