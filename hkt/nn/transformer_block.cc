#include "hkt/nn/transformer_block.h"

#include <ATen/ops/gelu.h>

#include "hkt/base/error.h"
#include "hkt/nn/group.h"
#include "hkt/ops/dropout.h"

namespace hkt::nn {

TransformerBlockImpl::TransformerBlockImpl(const HktAttentionOptions& attention, int64_t d_ff,
                                           double dropout)
    : dropout_(dropout) {
  CheckOptions(attention);
  CheckUsage(d_ff >= 1, "d_ff is ", d_ff, ", must be at least 1");
  CheckUsage(dropout >= 0 && dropout < 1, "dropout is ", dropout,
             ", must be at least 0 and below 1");
  const int64_t d = attention.d_model;
  const torch::nn::LayerNormOptions norm({d});
  attention_norm_ = register_module("attention_norm", torch::nn::LayerNorm(norm));
  attention_ = register_module("attention", HktAttention(attention));
  ffn_norm_ = register_module("ffn_norm", torch::nn::LayerNorm(norm));
  Group ffn = register_module("ffn", Group());
  widen_ = Enter(ffn, 0, torch::nn::Linear(d, d_ff));
  narrow_ = Enter(ffn, 1, torch::nn::Linear(d_ff, d));
}

at::Tensor TransformerBlockImpl::AttentionInput(const at::Tensor& x) {
  return attention_norm_->forward(x);
}

at::Tensor TransformerBlockImpl::forward(const at::Tensor& x,
                                         const std::optional<at::Tensor>& lengths) {
  const at::Tensor attended = x + attention_->forward(attention_norm_->forward(x), lengths);
  at::Tensor ffn = narrow_->forward(at::gelu(widen_->forward(ffn_norm_->forward(attended))));
  if (dropout_ > 0 && is_training()) ffn = ops::Dropout(ffn, dropout_);
  return attended + ffn;
}

}  // namespace hkt::nn
