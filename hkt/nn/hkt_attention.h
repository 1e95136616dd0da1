#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "hkt/nn/downsample.h"
#include "hkt/nn/rotary.h"

namespace hkt::nn {

// How the weights lambda of the levels come about.
enum class Fusion {
  kLearned,  // softmax of the parameter level_logits, which starts at 0
  kUniform,  // 1/L; there is no such parameter
  kFrozen,   // softmax of level_logits, which starts at N(0, 1) and has no gradient
};
// X^(l) of X^(l-1).
enum class Downsampling {
  kConvolution,  // class Downsample
  kPick,         // its positions 0, s, 2 s, … as they are; no parameters
};

// levels = 1 without hybrid is standard multi-head attention.
struct HktAttentionOptions {
  int64_t d_model = 64;     // d, a multiple of heads; head width D = d / heads
  int64_t heads = 2;        // H
  int64_t kv_heads = 2;     // Hkv, a divisor of heads
  int64_t levels = 3;       // L
  int64_t stride = 2;       // s >= 2
  int64_t kernel_size = 3;  // k of the pyramid and of the branches
  bool hybrid = true;       // gates between attention and causal convolution
  bool psd = false;         // W_K = W_Q, needs kv_heads = heads
  bool rotary = false;      // rotate queries and keys by their position, needs an even head width
  bool causal = true;
  bool bias =
      false;  // of the query, key and value projections; the output projection always has one
  double score_gain = 1;  // factor on the fused score, fixed
  Fusion fusion = Fusion::kLearned;
  double gate_start = 2;  // of the gate logits: sigmoid(2) = 0.88 of a level is attention
  Downsampling downsampling = Downsampling::kConvolution;
  bool undecimated = false;  // all levels have T positions: undecimated.h
  double dropout = 0;        // on the layer's output
};

// Throws hkt::UsageError that names the option, what it is and what it may be.
void CheckOptions(const HktAttentionOptions& options);

// Number of parameters of the layer.
int64_t ParameterCount(const HktAttentionOptions& options);

// One attention layer of the Hierarchical Kernel Transformer (docs/model.md).
//   x [B, T, d] -> [B, T, d]; lengths int64 [B], 0 … T, counts the valid tokens, padding on the
//   right; none: all are.
// What stands at positions >= length, NaN included, changes no bit of the result or of any
// gradient; the result there is 0. Parameters, in this order: level_logits [H, L] (not uniform),
// gate_logits [H, L] (hybrid), query.{l}.*, key.{l}.* (not psd), value.*, output.*,
// downsample.{l}.* (l >= 1, not picked), conv.{l}.* (hybrid). Throws hkt::UsageError for options
// (CheckOptions), hkt::Error for an input of another rank, width, type or device.
class HktAttentionImpl : public torch::nn::Module {
 public:
  explicit HktAttentionImpl(const HktAttentionOptions& options);
  at::Tensor forward(const at::Tensor& x, const std::optional<at::Tensor>& lengths = std::nullopt);

  const HktAttentionOptions& options() const { return options_; }

 private:
  at::Tensor NextLevel(const at::Tensor& level, size_t l);
  void CheckInput(const at::Tensor& x, const std::optional<at::Tensor>& lengths) const;

  HktAttentionOptions options_;
  at::Tensor level_logits_;  // undefined where uniform
  at::Tensor gate_logits_;   // undefined without gates
  std::vector<torch::nn::Linear> query_;
  std::vector<torch::nn::Linear> key_;  // empty with psd
  torch::nn::Linear value_{nullptr};
  torch::nn::Linear output_{nullptr};
  std::vector<Downsample> downsample_;  // [l - 1] makes level l
  std::vector<SeparableConv> conv_;
  std::vector<RotaryTable> rotary_;
};
TORCH_MODULE(HktAttention);

// Throws hkt::Error unless lengths is int64 [B] on the device of x [B, …]. Its values are the
// operator's to check.
void CheckLengths(const at::Tensor& lengths, const at::Tensor& x);

}  // namespace hkt::nn
