#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hkt/base/config.h"
#include "hkt/train/model.h"

// One attention layer as the theory sees it (docs/theory.md): the two projections of every head and
// level, the pyramid's weights and the mixture, all in double, whatever the model's own type.

namespace hkt::analysis {

struct LevelWeights {
  // Rows act on tokens: q = x W_Q. With biases the token is (x, 1) and d' = d + 1, else d' = d. A
  // key head that several query heads share stands there once for each of them.
  at::Tensor query, key;  // [H, d', D]
  // The step from level l - 1; undefined at level 0.
  at::Tensor depthwise_weight;                  // [d, k]
  at::Tensor depthwise_bias;                    // [d]
  at::Tensor pointwise_weight, pointwise_bias;  // [d, d], [d]
  at::Tensor norm_weight, norm_bias;            // [d]
};

struct Layer {
  int64_t d = 0, H = 0, D = 0, L = 0, stride = 2;
  bool hybrid = false, psd = false, causal = true, bias = false;
  bool rotary = false;    // then scores depend on distances too and no matrix M^(l) exists
  double scale = 1;       // 1/sqrt(D)
  double score_gain = 1;  // factor on the fused score
  std::vector<LevelWeights> levels;
  at::Tensor lambda;   // [H, L], softmax of the level logits
  at::Tensor beta;     // [H, L], the gates; 1 without them
  at::Tensor weights;  // [H, L], w_l of the fused score: lambda_l beta_l / sum lambda beta

  int64_t width() const { return d + (bias ? 1 : 0); }  // d'
  // Tokens a position of level l stands for, s^l; saturates far above any sequence.
  int64_t step(int64_t l) const;
};

// From the parameters `prefix` + "query.0.weight", … of a resolved configuration. Throws Error for
// a parameter that is missing, UsageError for levels that are picked or undecimated.
Layer ReadLayer(const train::NamedTensors& parameters, const std::string& prefix,
                const ModelConfig& config);

// x [n, d] -> [n, d']: itself, or with the column of ones that carries the biases.
at::Tensor Augmented(const Layer& layer, const at::Tensor& x);

// M^(l) = W_Q W_K^T / sqrt(D) of one head, [d', d']. Error for rotary layers.
at::Tensor ScoreForm(const Layer& layer, int64_t l, int64_t head);

// q and k of a level, [H, T_l, D], from all its rows [T_l, d]; rotated by their positions where the
// model is rotary. S^(l) = scale q k^T.
struct Projections {
  at::Tensor query, key;
};
Projections Project(const Layer& layer, int64_t l, const at::Tensor& rows);

// Rows begin … end-1 of score_gain * sum_l w_l Up(S^(l)), not masked: levels[l] [T_l, d] ->
// [H, end - begin, T].
at::Tensor FusedScores(const Layer& layer, const std::vector<at::Tensor>& levels, int64_t begin,
                       int64_t end);

}  // namespace hkt::analysis
