#include "hkt/nn/hkt_attention.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "hkt/base/error.h"
#include "hkt/base/warn.h"
#include "hkt/nn/group.h"
#include "hkt/nn/undecimated.h"
#include "hkt/ops/dropout.h"
#include "hkt/ops/ops.h"
#include "hkt/ops/padding.h"

namespace hkt::nn {
namespace {

HktAttentionOptions Checked(const HktAttentionOptions& options) {
  CheckOptions(options);
  return options;
}

}  // namespace

void CheckOptions(const HktAttentionOptions& o) {
  const auto at_least = [](const char* name, int64_t value, int64_t least) {
    CheckUsage(value >= least, name, " is ", value, ", must be at least ", least);
  };
  at_least("heads", o.heads, 1);
  at_least("kv_heads", o.kv_heads, 1);
  at_least("d_model", o.d_model, 1);
  at_least("levels", o.levels, 1);
  at_least("stride", o.stride, 2);
  at_least("kernel_size", o.kernel_size, 1);
  CheckUsage(o.d_model % o.heads == 0, "d_model is ", o.d_model,
             ", must be a multiple of heads = ", o.heads);
  CheckUsage(o.heads % o.kv_heads == 0, "kv_heads is ", o.kv_heads,
             ", must divide heads = ", o.heads);
  CheckUsage(!o.psd || o.kv_heads == o.heads, "psd needs kv_heads = heads; kv_heads is ",
             o.kv_heads, ", heads is ", o.heads);
  CheckUsage(!o.rotary || (o.d_model / o.heads) % 2 == 0,
             "rotary needs an even head width; d_model / heads = ", o.d_model / o.heads);
  CheckUsage(std::isfinite(o.score_gain) && o.score_gain > 0, "score_gain is ", o.score_gain,
             ", must be above 0 and finite");
  CheckUsage(o.levels > 1 || (o.fusion == Fusion::kLearned &&
                              o.downsampling == Downsampling::kConvolution && !o.undecimated),
             "levels is 1, which leaves fusion, downsampling and undecimated nothing to change");
  CheckUsage(!o.undecimated || o.downsampling == Downsampling::kConvolution,
             "undecimated levels pick no positions; leave one of the two options out");
  CheckUsage(std::isfinite(o.gate_start), "gate_start is ", o.gate_start, ", must be finite");
  CheckUsage(o.dropout >= 0 && o.dropout < 1, "dropout is ", o.dropout,
             ", must be at least 0 and below 1");
}

int64_t ParameterCount(const HktAttentionOptions& o) {
  const int64_t d = o.d_model, L = o.levels, d_kv = d / o.heads * o.kv_heads;
  const auto linear = [d](int64_t out, bool bias) { return d * out + (bias ? out : 0); };
  const int64_t separable = d * o.kernel_size + d + linear(d, true);
  const int64_t logits = (o.fusion == Fusion::kUniform ? 0 : 1) + (o.hybrid ? 1 : 0);
  const int64_t pyramid = o.downsampling == Downsampling::kPick ? 0 : separable + 2 * d;
  return o.heads * L * logits                                              // lambda, gates
         + L * linear(d, o.bias) + (o.psd ? 0 : L * linear(d_kv, o.bias))  // query, key
         + linear(d_kv, o.bias) + linear(d, true)                          // value, output
         + (L - 1) * pyramid + (o.hybrid ? L * separable : 0);             // pyramid, branches
}

void CheckLengths(const at::Tensor& lengths, const at::Tensor& x) {
  Check(lengths.defined() && lengths.dim() == 1 && lengths.size(0) == x.size(0),
        "lengths has shape ", lengths.defined() ? Concat(lengths.sizes()) : "(undefined)",
        ", must be [B] = [", x.size(0), "]");
  Check(lengths.scalar_type() == at::kLong, "lengths is ", c10::toString(lengths.scalar_type()),
        ", must be int64");
  Check(lengths.device() == x.device(), "lengths is on ", lengths.device(), ", must be on ",
        x.device(), " like the input");
}

HktAttentionImpl::HktAttentionImpl(const HktAttentionOptions& options)
    : options_(Checked(options)) {
  const auto& o = options_;
  const int64_t d = o.d_model, d_kv = d / o.heads * o.kv_heads;
  const bool picks = o.downsampling == Downsampling::kPick;
  if (o.levels > 1 && o.stride > o.kernel_size && !picks && !o.undecimated) {
    WarnOnce(Concat(
        "stride ", o.stride, " is above kernel_size ", o.kernel_size,
        ": some tokens never reach the coarse levels; use a kernel_size of at least the stride"));
  }
  const auto linear = [](Group& group, int64_t l, int64_t in, int64_t out, bool bias) {
    return Enter(group, l, torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(bias)));
  };
  if (o.fusion != Fusion::kUniform) {
    const bool frozen = o.fusion == Fusion::kFrozen;
    level_logits_ = register_parameter(
        "level_logits", frozen ? at::randn({o.heads, o.levels}) : at::zeros({o.heads, o.levels}),
        !frozen);
  }
  if (o.hybrid) {
    gate_logits_ = register_parameter("gate_logits", at::full({o.heads, o.levels}, o.gate_start));
  }
  Group query = register_module("query", Group());
  for (int64_t l = 0; l < o.levels; ++l) query_.push_back(linear(query, l, d, d, o.bias));
  if (!o.psd) {
    Group key = register_module("key", Group());
    for (int64_t l = 0; l < o.levels; ++l) key_.push_back(linear(key, l, d, d_kv, o.bias));
  }
  value_ =
      register_module("value", torch::nn::Linear(torch::nn::LinearOptions(d, d_kv).bias(o.bias)));
  output_ = register_module("output", torch::nn::Linear(d, d));
  if (o.levels > 1 && !picks) {
    Group downsample = register_module("downsample", Group());
    for (int64_t l = 1; l < o.levels; ++l) {
      downsample_.push_back(Enter(downsample, l, Downsample(d, o.kernel_size, o.stride)));
    }
  }
  if (o.hybrid) {
    Group conv = register_module("conv", Group());
    for (int64_t l = 0; l < o.levels; ++l) {
      conv_.push_back(Enter(conv, l, SeparableConv(d, o.kernel_size)));
    }
  }
  if (o.rotary) {
    double step = 1;
    for (int64_t l = 0; l < o.levels; ++l) {
      rotary_.emplace_back(step);
      if (!o.undecimated) step *= static_cast<double>(o.stride);
    }
  }
}

void HktAttentionImpl::CheckInput(const at::Tensor& x,
                                  const std::optional<at::Tensor>& lengths) const {
  const at::Tensor& weight = value_->weight;
  Check(x.defined() && x.dim() == 3 && x.size(2) == options_.d_model, "x has shape ",
        x.defined() ? Concat(x.sizes()) : "(undefined)",
        ", must be [B, T, d_model = ", options_.d_model, "]");
  Check(x.device() == weight.device(), "x is on ", x.device(), ", must be on ", weight.device(),
        " like the layer's weights");
  Check(x.scalar_type() == weight.scalar_type(), "x is ", c10::toString(x.scalar_type()),
        ", must be ", c10::toString(weight.scalar_type()), " like the layer's weights");
  if (lengths) CheckLengths(*lengths, x);
}

at::Tensor HktAttentionImpl::NextLevel(const at::Tensor& level, size_t l) {
  const auto& o = options_;
  if (o.undecimated) {
    return downsample_[l - 1]->EveryPosition(level, LevelStep(o.stride, l - 1));
  }
  if (o.downsampling == Downsampling::kPick) {
    return level.slice(1, 0, std::nullopt, o.stride).contiguous();
  }
  return downsample_[l - 1]->forward(level);
}

at::Tensor HktAttentionImpl::forward(const at::Tensor& x,
                                     const std::optional<at::Tensor>& lengths) {
  CheckInput(x, lengths);
  const auto& o = options_;
  const int64_t B = x.size(0), T = x.size(1), D = o.d_model / o.heads;
  // [B, Tl, heads * D] memory seen as [B, heads, Tl, D]: no copy.
  const auto heads = [&](const at::Tensor& rows, int64_t count) {
    return rows.view({B, rows.size(1), count, D});
  };
  // A select, so that NaN in the padding meets no arithmetic: 0 times NaN is NaN in every weight's
  // gradient.
  at::Tensor valid;
  if (lengths) valid = ops::ValidRows(*lengths, T).unsqueeze(2);
  const at::Tensor tokens = lengths ? ops::ZeroPadding(x, valid) : x;

  std::vector<at::Tensor> queries, keys, branches;
  at::Tensor level = tokens;
  for (size_t l = 0; l < query_.size(); ++l) {
    if (l > 0) {
      level = NextLevel(level, l);
      if (level.size(1) == 1 && !o.undecimated) {
        WarnOnce(Concat(
            "level ", l, " has a single position for sequences of T <= ", o.stride, "^", l,
            " tokens: it only flattens the attention there; use fewer levels or longer sequences"));
      }
    }
    at::Tensor query = heads(query_[l]->forward(level), o.heads);
    at::Tensor key = o.psd ? query : heads(key_[l]->forward(level), o.kv_heads);
    if (o.rotary) {
      query = rotary_[l].Rotate(query);
      key = o.psd ? query : rotary_[l].Rotate(key);
    }
    queries.push_back(query.transpose(1, 2));
    keys.push_back(key.transpose(1, 2));
    if (o.hybrid) {
      const int64_t dilation = o.undecimated ? LevelStep(o.stride, l) : 1;
      branches.push_back(heads(conv_[l]->forward(level, dilation), o.heads).transpose(1, 2));
    }
  }
  const at::Tensor value = heads(value_->forward(tokens), o.kv_heads).transpose(1, 2);
  const at::Tensor level_logits =
      level_logits_.defined()
          ? level_logits_
          : at::zeros({o.heads, o.levels}, value_->weight.options().requires_grad(false));
  const auto gate_logits = o.hybrid ? std::optional<at::Tensor>(gate_logits_) : std::nullopt;
  const at::Tensor mixed =
      o.undecimated
          ? UndecimatedAttention(queries, keys, value, level_logits, gate_logits, branches,
                                 o.score_gain, o.causal, lengths)
          : ops::multiscale_attention(queries, keys, value, level_logits, gate_logits, branches,
                                      o.stride, std::nullopt, o.score_gain, o.causal, lengths);
  at::Tensor out = output_->forward(mixed.transpose(1, 2).reshape({B, T, o.d_model}));
  if (o.dropout > 0 && is_training()) out = ops::Dropout(out, o.dropout);
  return lengths ? ops::ZeroPadding(out, valid) : out;
}

}  // namespace hkt::nn
