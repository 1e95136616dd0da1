#include "hkt/nn/classifier.h"

#include <ATen/ops/aminmax.h>

#include "hkt/base/error.h"
#include "hkt/nn/group.h"
#include "hkt/ops/dropout.h"
#include "hkt/ops/padding.h"

namespace hkt::nn {
namespace {

constexpr double kEmbeddingDeviation = 0.02;
constexpr int64_t kChannels = 3;

ClassifierOptions Checked(const ClassifierOptions& options) {
  CheckOptions(options);
  return options;
}

torch::nn::Embedding MakeEmbedding(int64_t rows, int64_t d_model) {
  torch::nn::Embedding embedding(rows, d_model);
  torch::NoGradGuard no_grad;
  embedding->weight.normal_(0, kEmbeddingDeviation);
  return embedding;
}

// Linear(d, d_ff), Linear(d_ff, d) of every block.
int64_t FfnParameterCount(const ClassifierOptions& o) {
  return o.layers * (2 * o.attention.d_model * o.d_ff + o.d_ff + o.attention.d_model);
}

}  // namespace

HktAttentionOptions AttentionOptions(const ModelConfig& m) {
  CheckUsage(m.levels && m.hybrid && m.kv_heads,
             "the model configuration has no levels, hybrid or kv_heads: call hkt::Resolve first");
  return {.d_model = m.d_model,
          .heads = m.heads,
          .kv_heads = *m.kv_heads,
          .levels = *m.levels,
          .stride = m.stride,
          .kernel_size = m.kernel_size,
          .hybrid = *m.hybrid,
          .psd = m.psd,
          .rotary = m.rotary,
          .causal = !m.bidirectional,
          .bias = m.bias,
          .score_gain = m.score_gain,
          .fusion = m.fusion == "uniform"  ? Fusion::kUniform
                    : m.fusion == "frozen" ? Fusion::kFrozen
                                           : Fusion::kLearned,
          .gate_start = m.gate_start,
          .downsampling = m.downsample == "pick" ? Downsampling::kPick : Downsampling::kConvolution,
          .undecimated = m.undecimated,
          .dropout = m.dropout};
}

ClassifierOptions MakeClassifierOptions(const ModelConfig& m, int64_t vocabulary, int64_t seq_len,
                                        int64_t classes, bool rgb) {
  ClassifierOptions o;
  o.attention = AttentionOptions(m);
  o.layers = m.layers;
  o.d_ff = m.d_ff;
  o.rgb = rgb;
  o.vocabulary = vocabulary;
  o.seq_len = seq_len;
  o.classes = classes;
  o.dropout = m.dropout;
  CheckOptions(o);
  if (m.model == "mha-wide") {
    Config hkt;
    hkt.model = m;
    hkt.model.model = "hkt";
    hkt.model.levels.reset();
    hkt.model.hybrid.reset();
    Resolve(hkt);
    const int64_t wanted =
        ParameterCount(MakeClassifierOptions(hkt.model, vocabulary, seq_len, classes, rgb));
    // Every unit of width costs 2 d + 1 parameters a block.
    const int64_t unit = o.layers * (2 * m.d_model + 1);
    o.d_ff += (wanted - ParameterCount(o) + unit / 2) / unit;
  }
  return o;
}

void CheckOptions(const ClassifierOptions& o) {
  CheckOptions(o.attention);
  const auto at_least_one = [](const char* name, int64_t value) {
    CheckUsage(value >= 1, name, " is ", value, ", must be at least 1");
  };
  at_least_one("layers", o.layers);
  at_least_one("d_ff", o.d_ff);
  if (!o.rgb) at_least_one("vocabulary", o.vocabulary);
  at_least_one("classes", o.classes);
  if (!o.attention.rotary) at_least_one("seq_len", o.seq_len);
  CheckUsage(o.dropout >= 0 && o.dropout < 1, "dropout is ", o.dropout,
             ", must be at least 0 and below 1");
}

int64_t ParameterCount(const ClassifierOptions& o) {
  const int64_t d = o.attention.d_model;
  const int64_t embedding = o.rgb ? kChannels * d + d : o.vocabulary * d;
  return embedding + (o.attention.rotary ? 0 : o.seq_len * d) +
         o.layers * (ParameterCount(o.attention) + 4 * d) + FfnParameterCount(o) + 2 * d +
         d * o.classes + o.classes;
}

ClassifierImpl::ClassifierImpl(const ClassifierOptions& options) : options_(Checked(options)) {
  const auto& o = options_;
  const int64_t d = o.attention.d_model;
  if (o.rgb) {
    colours_ = register_module("embedding", torch::nn::Linear(kChannels, d));
  } else {
    embedding_ = register_module("embedding", MakeEmbedding(o.vocabulary, d));
  }
  if (!o.attention.rotary) position_ = register_module("position", MakeEmbedding(o.seq_len, d));
  Group blocks = register_module("blocks", Group());
  for (int64_t i = 0; i < o.layers; ++i) {
    blocks_.push_back(Enter(blocks, i, TransformerBlock(o.attention, o.d_ff, o.dropout)));
  }
  final_norm_ =
      register_module("final_norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({d})));
  head_ = register_module("head", torch::nn::Linear(d, o.classes));
}

void ClassifierImpl::CheckShape(const at::Tensor& ids) const {
  const bool rgb = options_.rgb;
  const bool fits =
      ids.defined() && ids.dim() == (rgb ? 3 : 2) && (!rgb || ids.size(2) == kChannels);
  Check(fits, "ids has shape ", ids.defined() ? Concat(ids.sizes()) : "(undefined)",
        rgb ? ", must be [B, T, 3]" : ", must be [B, T]");
  const at::ScalarType type = ids.scalar_type();
  Check(type == at::kLong || (rgb && (type == at::kByte || at::isFloatingType(type))), "ids is ",
        c10::toString(type), rgb ? ", must be int64, uint8 or floating" : ", must be int64");
}

void ClassifierImpl::CheckValues(const at::Tensor& ids) const {
  if (ids.numel() == 0 || ids.scalar_type() != at::kLong) return;
  const auto [low, high] = at::aminmax(ids);
  const int64_t least = low.item<int64_t>(), most = high.item<int64_t>();
  const int64_t limit = options_.rgb ? 256 : options_.vocabulary;
  Check(least >= 0 && most < limit, "ids has the value ", least < 0 ? least : most,
        ", must be 0 … ", limit - 1,
        options_.rgb ? std::string(" (bytes)") : Concat(" (vocabulary ", limit, ")"));
}

at::Tensor ClassifierImpl::Embed(const at::Tensor& tokens) {
  if (!options_.rgb) return embedding_->forward(tokens);
  at::Tensor values = tokens.to(colours_->weight.scalar_type());
  if (!at::isFloatingType(tokens.scalar_type())) values = values / 127.5 - 1;
  return colours_->forward(values);
}

at::Tensor ClassifierImpl::forward(const at::Tensor& ids, const std::optional<at::Tensor>& lengths,
                                   std::vector<at::Tensor>* attention_inputs) {
  CheckShape(ids);
  const int64_t T = ids.size(1);
  Check(position_.is_empty() || T <= options_.seq_len, "ids has T = ", T,
        " tokens, but the model has learned positions for ", options_.seq_len,
        "; cut the sequence or train with a larger seq_len (or rotary)");
  at::Tensor valid, tokens = ids;
  if (lengths) {
    CheckLengths(*lengths, ids);
    valid = ops::ValidRows(*lengths, T);
    tokens = ops::ZeroPadding(ids, options_.rgb ? valid.unsqueeze(2) : valid);
  }
  CheckValues(tokens);

  at::Tensor x = Embed(tokens);
  if (position_) x = x + position_->weight.narrow(0, 0, T);
  if (options_.dropout > 0 && is_training()) x = ops::Dropout(x, options_.dropout);
  for (TransformerBlock& block : blocks_) {
    if (attention_inputs) attention_inputs->push_back(block->AttentionInput(x));
    x = block->forward(x, lengths);
  }
  x = final_norm_->forward(x);

  at::Tensor pooled;
  if (lengths) {
    // A sequence without tokens is a sum of nothing over 1.
    pooled = ops::ZeroPadding(x, valid.unsqueeze(2)).sum(1) /
             lengths->clamp_min(1).unsqueeze(1).to(x.scalar_type());
  } else {
    pooled = T > 0 ? x.mean(1) : x.sum(1);
  }
  return head_->forward(pooled);
}

}  // namespace hkt::nn
