#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "hkt/base/config.h"
#include "hkt/nn/transformer_block.h"

namespace hkt::nn {

struct ClassifierOptions {
  HktAttentionOptions attention;
  int64_t layers = 2;
  int64_t d_ff = 128;
  bool rgb = false;        // three channels a step through a linear map instead of ids
  int64_t vocabulary = 0;  // ids 0 … vocabulary - 1; without meaning with rgb
  int64_t seq_len = 0;     // longest sequence; only learned positions need it
  int64_t classes = 0;
  double dropout =
      0.1;  // on the embeddings and the feed-forward; attention.dropout is the attention's own
};

// The attention of a resolved configuration (hkt::Resolve); hkt::UsageError for one that is not.
HktAttentionOptions AttentionOptions(const ModelConfig& resolved);

// The options of a resolved configuration. For mha-wide the feed-forward is widened
// until the model has as many parameters as model hkt (three levels, gates) with the same other
// fields: the nearest width, within 1 %. Throws hkt::UsageError where CheckOptions does.
ClassifierOptions MakeClassifierOptions(const ModelConfig& resolved, int64_t vocabulary,
                                        int64_t seq_len, int64_t classes, bool rgb = false);

// Throws hkt::UsageError that names the option, what it is and what it may be.
void CheckOptions(const ClassifierOptions& options);

// Number of parameters of the model, without building it.
int64_t ParameterCount(const ClassifierOptions& options);

// Embedding and learned positions (none with rotary), pre-norm blocks, final norm, mean over the
// valid positions, head.
//   ids [B, T] int64, lengths int64 [B], 0 … T (none: all valid) -> logits [B, classes]
// With rgb, ids [B, T, 3] instead: the values 0 … 255 of the three channels as int64 or uint8,
// which become v / 127.5 - 1, from -1 to 1; or floating numbers, which are taken as they are. They
// go through Linear(3, d). Ids at positions >= length may be anything; more padding changes the
// logits only by rounding. A sequence of length 0 pools to 0. Parameters embedding.weight,
// position.weight [seq_len, d] (not with rotary), blocks.{i}.*, final_norm.*, head.*, and with rgb
// embedding.weight [d, 3] and embedding.bias; embedding of ids and positions start at N(0, 0.02),
// all else as PyTorch's Linear, Conv1d and LayerNorm. Throws hkt::UsageError for options,
// hkt::Error for ids of another rank, type or range, or T > seq_len.
class ClassifierImpl : public torch::nn::Module {
 public:
  explicit ClassifierImpl(const ClassifierOptions& options);
  // attention_inputs, when not null, is filled with what the attention of each block reads,
  // [B, T, d], for those who look inside.
  at::Tensor forward(const at::Tensor& ids, const std::optional<at::Tensor>& lengths = std::nullopt,
                     std::vector<at::Tensor>* attention_inputs = nullptr);

  const ClassifierOptions& options() const { return options_; }

 private:
  void CheckShape(const at::Tensor& ids) const;
  void CheckValues(const at::Tensor& ids) const;
  at::Tensor Embed(const at::Tensor& tokens);

  ClassifierOptions options_;
  torch::nn::Embedding embedding_{nullptr};  // null with rgb
  torch::nn::Linear colours_{nullptr};       // registered as "embedding"; null without rgb
  torch::nn::Embedding position_{nullptr};   // null with rotary
  std::vector<TransformerBlock> blocks_;
  torch::nn::LayerNorm final_norm_{nullptr};
  torch::nn::Linear head_{nullptr};
};
TORCH_MODULE(Classifier);

}  // namespace hkt::nn
