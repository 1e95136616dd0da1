#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "hkt/analysis/subject.h"

namespace hkt::analysis {

// Sums over the rows or pairs of sequences, in double. Pairs are the valid ones (j <= i with the
// causal mask); scores are those that enter the softmax, score_gain w_l Up(S^(l)), less their mean
// over the row, which the softmax ignores.
struct MixtureSums {
  double rows = 0, pairs = 0;
  double uniform_entropy = 0, uniform_distance = 0;  // of uniform attention
  at::Tensor entropy;                                // [H], nats
  at::Tensor distance;                               // [H], sum_j p_ij |i - j|
  at::Tensor level_distance;                         // [H, L], with only level l, at weight 1
  at::Tensor covariance;      // [H, L], level l's scores times the fused ones: sum_l = variance
  at::Tensor level_variance;  // [H, L]
  at::Tensor variance;        // [H]

  void Add(const MixtureSums& other);
};

// Of one sequence: levels[l] [T_l, d]. T^2 time, `chunk` rows of T at a time in memory.
MixtureSums MixtureOf(const Layer& layer, const std::vector<at::Tensor>& levels,
                      int64_t chunk = 128);

// lambda, beta, what the levels contribute to the scores, entropy and distance of the attention.
//   mixture.levels, .heads: docs/analyze.md.
std::unique_ptr<Subject> MakeMixtureSubject(const std::vector<Layer>& layers);

}  // namespace hkt::analysis
