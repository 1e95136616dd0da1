// Shapes, types and strides of every operator without its numbers: what torch.compile and
// torch.export trace with. Sizes stay symbolic, so that one graph serves every T; strides are those
// that the kernels return.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <vector>

#include "hkt/ops/checks.h"

namespace hkt::ops {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// [B, H, T, D] of the same B and T as `like`, laid out as [B, T, H, D] memory.
at::Tensor EmptyRows(const at::Tensor& like, const c10::SymInt& H, const c10::SymInt& D) {
  return at::empty_symint({like.sym_size(0), like.sym_size(2), H, D}, like.options())
      .transpose(1, 2);
}

at::Tensor EmptyLike(const at::Tensor& like) {
  return at::empty_symint(like.sym_sizes(), like.options());
}

at::Tensor EmptyCoarse(const at::Tensor& x, int64_t stride) {
  return at::empty_symint({x.sym_size(0), (x.sym_size(1) + (stride - 1)) / stride, x.sym_size(2)},
                          x.options());
}

std::tuple<at::Tensor, at::Tensor> AttentionForwardMeta(at::TensorList queries, at::TensorList keys,
                                                        const at::Tensor& value, int64_t stride,
                                                        std::optional<double>, bool,
                                                        const OptionalTensor& lengths) {
  CheckAttention(queries, keys, value, stride, lengths);
  const at::Tensor& q = queries[0];
  return {EmptyRows(q, q.sym_size(1), value.sym_size(3)),
          at::empty_symint({q.sym_size(0), q.sym_size(1), q.sym_size(2)},
                           q.options().dtype(ExactType(q.scalar_type())))};
}

std::vector<at::Tensor> AttentionBackwardMeta(const at::Tensor& d_out, at::TensorList queries,
                                              at::TensorList keys, const at::Tensor& value,
                                              const at::Tensor& out, const at::Tensor& lse,
                                              int64_t stride, std::optional<double>, bool,
                                              const OptionalTensor& lengths) {
  CheckAttentionBackward(d_out, queries, keys, value, out, lse, stride, lengths);
  std::vector<at::Tensor> gradients;
  const auto add = [&](const at::Tensor& input) {
    gradients.push_back(EmptyRows(input, input.sym_size(1), input.sym_size(3)));
  };
  for (const at::Tensor& query : queries) add(query);
  for (const at::Tensor& key : keys) add(key);
  add(value);
  return gradients;
}

at::Tensor DownsampleMeta(const at::Tensor& x, const at::Tensor& depthwise_weight,
                          const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                          const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                          const at::Tensor& norm_bias, int64_t stride, double) {
  CheckDownsample(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                  norm_weight, norm_bias, stride);
  return EmptyCoarse(x, stride);
}

std::vector<at::Tensor> DownsampleBackwardMeta(
    const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& depthwise_weight,
    const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
    const at::Tensor& pointwise_bias, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
    int64_t stride, double) {
  CheckDownsampleBackward(d_out, x, depthwise_weight, depthwise_bias, pointwise_weight,
                          pointwise_bias, norm_weight, norm_bias, stride);
  return {EmptyLike(x),
          EmptyLike(depthwise_weight),
          EmptyLike(depthwise_bias),
          EmptyLike(pointwise_weight),
          EmptyLike(pointwise_bias),
          EmptyLike(norm_weight),
          EmptyLike(norm_bias)};
}

at::Tensor DepthwiseConvMeta(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             int64_t stride) {
  CheckDepthwiseConv(x, weight, bias, stride);
  return EmptyCoarse(x, stride);
}

std::vector<at::Tensor> DepthwiseConvBackwardMeta(const at::Tensor& d_out, const at::Tensor& x,
                                                  const at::Tensor& weight, int64_t stride) {
  CheckDepthwiseConvBackward(d_out, x, weight, stride);
  return {EmptyLike(x), EmptyLike(weight), at::empty_symint({x.sym_size(2)}, weight.options())};
}

at::Tensor DropoutMeta(const at::Tensor& x, const at::Tensor& seed, double p) {
  CheckDropout(x, seed, p);
  return EmptyLike(x);
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, Meta, m) {
  m.impl("depthwise_conv", DepthwiseConvMeta);
  m.impl("depthwise_conv_backward", DepthwiseConvBackwardMeta);
  m.impl("dropout", DropoutMeta);
  m.impl("attention_forward", AttentionForwardMeta);
  m.impl("attention_backward", AttentionBackwardMeta);
  m.impl("downsample", DownsampleMeta);
  m.impl("downsample_backward", DownsampleBackwardMeta);
}

}  // namespace hkt::ops
