#include "hkt/ops/ops.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace hkt::ops {

at::Tensor attention(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                     int64_t stride, std::optional<double> scale, bool causal,
                     const std::optional<at::Tensor>& lengths) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("hkt::attention", "")
                             .typed<decltype(attention)>();
  return op.call(queries, keys, value, stride, scale, causal, lengths);
}

at::Tensor downsample(const at::Tensor& x, const at::Tensor& depthwise_weight,
                      const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                      const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                      const at::Tensor& norm_bias, int64_t stride, double eps) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("hkt::downsample", "")
                             .typed<decltype(downsample)>();
  return op.call(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias, norm_weight,
                 norm_bias, stride, eps);
}

at::Tensor multiscale_attention(at::TensorList queries, at::TensorList keys,
                                const at::Tensor& value, const at::Tensor& level_logits,
                                const std::optional<at::Tensor>& gate_logits,
                                at::TensorList branches, int64_t stride,
                                std::optional<double> scale, double score_gain, bool causal,
                                const std::optional<at::Tensor>& lengths) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("hkt::multiscale_attention", "")
                             .typed<decltype(multiscale_attention)>();
  return op.call(queries, keys, value, level_logits, gate_logits, branches, stride, scale,
                 score_gain, causal, lengths);
}

}  // namespace hkt::ops
