#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

// The operators of the library hkt, as C++ functions that go through PyTorch's dispatcher
// (autograd, autocast, other devices, torch.compile all see them). The same operators are
// torch.ops.hkt.* in Python. Schemas: schema.cc.
//
// Shapes: B batch, H query heads, Hkv key/value heads (H a multiple of Hkv), T tokens, T_l =
// ceil(T_{l-1} / s) positions of level l, D head width, Dv value head width, d model width, k
// kernel width. Any strides; [B, T, H, D] memory seen as [B, H, T, D] costs no copy. Wrong shapes,
// types or devices throw c10::Error, naming the argument, what it got and what it needs.

namespace hkt::ops {

// Multi-scale attention: softmax(scale * sum_l Up(Q^(l) K^(l)^T)) V, lambda already folded into the
// queries.
//   queries[l] [B, H, T_l, D], keys[l] [B, Hkv, T_l, D], value [B, Hkv, T, Dv] -> [B, H, T, Dv],
//   which is [B, T, H, Dv] memory.
// scale defaults to 1/sqrt(D). causal masks j > i. lengths (int64 [B], 0 … T, on the inputs'
// device) counts the valid tokens, padding on the right: keys at j >= length get no weight, rows i
// >= length are 0 with gradients 0, and nothing that stands in the padding, NaN included, changes a
// bit of the rest.
at::Tensor attention(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                     int64_t stride, std::optional<double> scale = std::nullopt, bool causal = true,
                     const std::optional<at::Tensor>& lengths = std::nullopt);

// What hkt::attention is made of, for those who keep the parts themselves. Neither has a derivative
// of its own (NotImplementedError, never a wrong number).
//   attention_forward: out as above, and lse [B, H, T], contiguous, the natural logarithm of each
//   row's sum of exp(score), minus infinity without keys; float32, float64 for double inputs.
//   attention_backward: d_queries, d_keys, d_value in this order, 2 L + 1 tensors of the inputs'
//   shapes and type, each laid out as [B, T_l, H, D] memory.
std::tuple<at::Tensor, at::Tensor> attention_forward(
    at::TensorList queries, at::TensorList keys, const at::Tensor& value, int64_t stride,
    std::optional<double> scale = std::nullopt, bool causal = true,
    const std::optional<at::Tensor>& lengths = std::nullopt);
std::vector<at::Tensor> attention_backward(const at::Tensor& d_out, at::TensorList queries,
                                           at::TensorList keys, const at::Tensor& value,
                                           const at::Tensor& out, const at::Tensor& lse,
                                           int64_t stride, std::optional<double> scale, bool causal,
                                           const std::optional<at::Tensor>& lengths);

// One step of the pyramid: GELU(LayerNorm(pointwise(depthwise(x)))), the convolution causal with
// stride s and k - 1 zeros on the left, so that position tau reads x at tau*s - (k-1) … tau*s.
//   x [B, T, d], depthwise_weight [d, 1, k], depthwise_bias [d], pointwise_weight [d, d],
//   pointwise_bias, norm_weight, norm_bias [d] -> [B, ceil(T/s), d], contiguous
// The weights are of x's type, or float32 beside a 16-bit x.
at::Tensor downsample(const at::Tensor& x, const at::Tensor& depthwise_weight,
                      const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                      const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                      const at::Tensor& norm_bias, int64_t stride, double eps = 1e-5);

// Its seven gradients in the order of its arguments; the forward pass is recomputed. No derivative
// of its own.
std::vector<at::Tensor> downsample_backward(
    const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& depthwise_weight,
    const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
    const at::Tensor& pointwise_bias, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
    int64_t stride, double eps = 1e-5);

// The causal depthwise convolution, with stride 1 the first half of a hybrid head's branch C^(l):
// k - 1 zeros on the left, output tau reads x at tau*s - (k-1) … tau*s, each channel by itself.
//   x [B, T, d], weight [d, 1, k], bias [d] -> [B, ceil(T/s), d], contiguous
// The weights are of x's type, or float32 beside a 16-bit x. Sums are float32 (float64 for double).
at::Tensor depthwise_conv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                          int64_t stride = 1);

// d_x, d_weight, d_bias. No derivative of its own.
std::vector<at::Tensor> depthwise_conv_backward(const at::Tensor& d_out, const at::Tensor& x,
                                                const at::Tensor& weight, int64_t stride = 1);

// Dropout on the CPU by a counter-based generator: an element's fate depends on the seed and its
// position alone, so that no mask is stored, the pass is parallel and vectorised, and the result is
// bitwise the same on any number of threads. It is linear in x: its derivative is itself.
//   x any shape; seed one int64 on the CPU; p from 0 to 1, rounded to a multiple of 2^-16 ->
//   x / (1 - p) where kept, 0 times x where dropped; contiguous
// Use Dropout (dropout.h), which draws the seed.
at::Tensor dropout(const at::Tensor& x, const at::Tensor& seed, double p);

// The whole head: fusion weights, gates and attention (section "One attention layer" of
// docs/model.md).
//   level_logits, gate_logits [H, L]; lambda = softmax(level_logits), beta = sigmoid(gate_logits);
//   branches[l] [B, H, T_l, Dv] the causal convolutions split into heads, empty without gates ->
//   [B, H, T, Dv].
// Without gates: attention with lambda_l * score_gain folded into queries[l]. With gates:
//   bbar * attention(w_l = lambda_l beta_l / bbar) + sum_l lambda_l (1 - beta_l) Up(branches[l]),
//   bbar = sum_l lambda_l beta_l.
// lambda and beta are computed in fp32 (fp64 for double inputs); the product with a query is
// rounded once to its type.
at::Tensor multiscale_attention(at::TensorList queries, at::TensorList keys,
                                const at::Tensor& value, const at::Tensor& level_logits,
                                const std::optional<at::Tensor>& gate_logits,
                                at::TensorList branches, int64_t stride,
                                std::optional<double> scale = std::nullopt, double score_gain = 1.0,
                                bool causal = true,
                                const std::optional<at::Tensor>& lengths = std::nullopt);

}  // namespace hkt::ops
