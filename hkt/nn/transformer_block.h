#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>

#include "hkt/nn/hkt_attention.h"

namespace hkt::nn {

// Pre-norm: x + attention(norm(x)), then x + ffn(norm(x)), ffn = Linear(d, d_ff), GELU,
// Linear(d_ff, d), dropout.
//   x [B, T, d] -> [B, T, d]; lengths as in HktAttention. Padding must hold finite numbers here:
//   the norms see it, and
// a gradient of 0 times NaN is NaN; what they are changes nothing.
// Parameters attention_norm.*, attention.*, ffn_norm.*, ffn.0.*, ffn.1.*.
class TransformerBlockImpl : public torch::nn::Module {
 public:
  // The attention's own dropout is attention.dropout; dropout is that of the feed-forward.
  TransformerBlockImpl(const HktAttentionOptions& attention, int64_t d_ff, double dropout);
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& lengths = std::nullopt);
  // What the attention of this block reads: norm(x).
  at::Tensor AttentionInput(const at::Tensor& x);

 private:
  double dropout_;
  torch::nn::LayerNorm attention_norm_{nullptr};
  HktAttention attention_{nullptr};
  torch::nn::LayerNorm ffn_norm_{nullptr};
  torch::nn::Linear widen_{nullptr};
  torch::nn::Linear narrow_{nullptr};
};
TORCH_MODULE(TransformerBlock);

}  // namespace hkt::nn
