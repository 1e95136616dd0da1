#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "hkt/analysis/capture.h"
#include "hkt/analysis/layer.h"

// Level scores of pairs (i, j) of one sequence, centred over the row i: the softmax ignores what is
// constant in a row (docs/theory.md, 3.1). No T x T matrix: the mean of a row is a product with the
// mean of its keys.

namespace hkt::analysis {

// The two families of features, per level the symmetric and the antisymmetric score.
struct ScoreColumns {
  at::Tensor decimated;  // [..., P, 2L]: S_s^(0) … S_s^(L-1), S_a^(0) … S_a^(L-1) of the model
  at::Tensor undecimated;  // the same of z^(l)
};

class PairScores {
 public:
  // Error for rotary layers.
  PairScores(const Layer& layer, const SequenceLevels& levels);

  int64_t T() const { return T_; }

  // Pairs i, j [P], int64, valid (j <= i in causal layers), centred over the valid keys of row i.
  // All heads: [H, P, 2L].
  ScoreColumns Uniform(const at::Tensor& i, const at::Tensor& j) const;

  // One head; pairs (rows[r], j[r, m]), centred with the weights p [R, T] of whole rows, which sum
  // to 1: [R M, 2L].
  ScoreColumns Weighted(int64_t head, const at::Tensor& rows, const at::Tensor& p,
                        const at::Tensor& j) const;

  // The model's level scores at pairs, as they are: [H, P, L].
  at::Tensor Raw(const at::Tensor& i, const at::Tensor& j) const;

  // Whole rows of one head's level scores [R, T], not masked, not centred.
  at::Tensor Rows(int64_t head, int64_t level, const at::Tensor& rows, bool undecimated) const;

 private:
  struct Vectors {
    at::Tensor q, k;            // [H, T, D], q with the scale
    at::Tensor q_mean, k_mean;  // over the valid keys of every row
  };
  Vectors Read(const Layer& layer, int64_t level, const at::Tensor& rows) const;
  static at::Tensor Columns(const std::vector<at::Tensor>& forward,
                            const std::vector<at::Tensor>& backward);

  int64_t T_ = 0;
  std::vector<Vectors> decimated_, undecimated_;
};

// P pairs drawn uniformly from the valid pairs of T tokens.
struct PairDraw {
  at::Tensor i, j;  // [P]
};
PairDraw DrawPairs(int64_t T, int64_t count, bool causal, uint64_t seed);

// All valid pairs, T (T+1)/2 of causal layers, T^2 of others: for short sequences.
PairDraw AllPairs(int64_t T, bool causal);

}  // namespace hkt::analysis
