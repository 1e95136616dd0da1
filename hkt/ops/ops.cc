#include "hkt/ops/ops.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace hkt::ops {
namespace {

template <class Signature>
c10::TypedOperatorHandle<Signature> Find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Signature>();
}

}  // namespace

at::Tensor attention(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                     int64_t stride, std::optional<double> scale, bool causal,
                     const std::optional<at::Tensor>& lengths) {
  static const auto op = Find<decltype(attention)>("hkt::attention");
  return op.call(queries, keys, value, stride, scale, causal, lengths);
}

std::tuple<at::Tensor, at::Tensor> attention_forward(at::TensorList queries, at::TensorList keys,
                                                     const at::Tensor& value, int64_t stride,
                                                     std::optional<double> scale, bool causal,
                                                     const std::optional<at::Tensor>& lengths) {
  static const auto op = Find<decltype(attention_forward)>("hkt::attention_forward");
  return op.call(queries, keys, value, stride, scale, causal, lengths);
}

std::vector<at::Tensor> attention_backward(const at::Tensor& d_out, at::TensorList queries,
                                           at::TensorList keys, const at::Tensor& value,
                                           const at::Tensor& out, const at::Tensor& lse,
                                           int64_t stride, std::optional<double> scale, bool causal,
                                           const std::optional<at::Tensor>& lengths) {
  static const auto op = Find<decltype(attention_backward)>("hkt::attention_backward");
  return op.call(d_out, queries, keys, value, out, lse, stride, scale, causal, lengths);
}

at::Tensor downsample(const at::Tensor& x, const at::Tensor& depthwise_weight,
                      const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                      const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                      const at::Tensor& norm_bias, int64_t stride, double eps) {
  static const auto op = Find<decltype(downsample)>("hkt::downsample");
  return op.call(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias, norm_weight,
                 norm_bias, stride, eps);
}

std::vector<at::Tensor> downsample_backward(
    const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& depthwise_weight,
    const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
    const at::Tensor& pointwise_bias, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
    int64_t stride, double eps) {
  static const auto op = Find<decltype(downsample_backward)>("hkt::downsample_backward");
  return op.call(d_out, x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                 norm_weight, norm_bias, stride, eps);
}

at::Tensor depthwise_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                          int64_t stride) {
  static const auto op = Find<decltype(depthwise_conv)>("hkt::depthwise_conv");
  return op.call(x, weight, bias, stride);
}

std::vector<at::Tensor> depthwise_conv_backward(const at::Tensor& d_out, const at::Tensor& x,
                                                const at::Tensor& weight, int64_t stride) {
  static const auto op = Find<decltype(depthwise_conv_backward)>("hkt::depthwise_conv_backward");
  return op.call(d_out, x, weight, stride);
}

at::Tensor dropout(const at::Tensor& x, const at::Tensor& seed, double p) {
  static const auto op = Find<decltype(dropout)>("hkt::dropout");
  return op.call(x, seed, p);
}

at::Tensor multiscale_attention(at::TensorList queries, at::TensorList keys,
                                const at::Tensor& value, const at::Tensor& level_logits,
                                const std::optional<at::Tensor>& gate_logits,
                                at::TensorList branches, int64_t stride,
                                std::optional<double> scale, double score_gain, bool causal,
                                const std::optional<at::Tensor>& lengths) {
  static const auto op = Find<decltype(multiscale_attention)>("hkt::multiscale_attention");
  return op.call(queries, keys, value, level_logits, gate_logits, branches, stride, scale,
                 score_gain, causal, lengths);
}

}  // namespace hkt::ops
