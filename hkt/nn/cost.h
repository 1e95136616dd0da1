#pragma once

#include <cstdint>

#include "hkt/nn/classifier.h"

namespace hkt::nn {

// Multiply-adds of one attention layer, part by part; the formulas are below.
struct AttentionCost {
  double projections = 0;  // queries and keys of every level, values, output
  double downsample = 0;   // the pyramid
  double scores = 0;       // of every level
  double values = 0;       // P V
  double branches = 0;     // the convolutions of the hybrid head
  double total() const { return projections + downsample + scores + values + branches; }
};
AttentionCost AttentionMultiplyAdds(const HktAttentionOptions& options, int64_t length);

// Useful multiply-adds of the forward pass over one sequence of `length` valid tokens, by the
// formulas of the paper's cost section, T_l = ceil(T / s^l), P(T) = T (T + 1) / 2 pairs (causal) or
// T^2, Dkv = kv_heads * D:
//   a layer   queries, keys    sum_l T_l d (d + Dkv)       with psd sum_l T_l d^2
//             values, output   T d (d + Dkv)
//             downsampling     sum_{l >= 1} T_l (k d + d^2)   picked: 0
//             scores, P V      d (sum_l P(T_l) + P(T))
//             branches         sum_l T_l (k d + d^2)       with hybrid
//             feed-forward     2 T d d_ff
//   head      d classes
// Undecimated levels have T_l = T.
// Not counted: embedding, norms, GELU, exp, fusion, dropout, padding, masked pairs, and whatever
// an implementation computes twice.
double ForwardMultiplyAdds(const ClassifierOptions& options, int64_t length);

}  // namespace hkt::nn
