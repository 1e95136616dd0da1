#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "hkt/analysis/pair_scores.h"

namespace hkt::analysis {

// One head's pairs under the target's own attention (docs/theory.md, 3.7), and what its rows say of
// attention itself. Rows alike, keys drawn with p* = softmax(S*), scores centred with p*.
struct AttentionPairs {
  ScoreColumns columns;  // [R M, 2L]

  // Of every row [R], for the model of L' = 1 … L levels: p its attention, D = S* - S_hat over the
  // row's keys, B the range of D.
  struct Rows {
    at::Tensor kl;              // KL(p* || p)
    at::Tensor range_bound;     // B^2/8
    at::Tensor variance_bound;  // Var_p*(D) (e^B - 1 - B)/B^2
    at::Tensor l1, l1_bound;    // |p* - p|_1 and B/2
  };
  std::vector<Rows> rows;
  int64_t draws = 0;  // pairs drawn of each row
};

// `pairs` of them on at most 256 rows; all rows of shorter sequences.
AttentionPairs DrawAttentionPairs(const Layer& layer, const PairScores& scores, int64_t head,
                                  int64_t pairs, uint64_t seed);

}  // namespace hkt::analysis
