#pragma once

#include <cstdint>

#include "hkt/analysis/subject.h"
#include "hkt/base/config.h"

namespace hkt::analysis {

// Multiply-adds of one attention layer over one sequence of T tokens, forward (theory.md 5), as
// hkt/nn/cost.h counts them, part by part; without `causal` all T^2 pairs are counted, with it
// those with j <= i.
struct LayerCost {
  int64_t projections = 0;  // Q and K of every level, V, output
  int64_t downsample = 0;   // the pyramid
  int64_t scores = 0;       // Q K^T of every level
  int64_t values = 0;       // P V
  int64_t branch = 0;       // the convolutions of the hybrid head
  int64_t total() const { return projections + downsample + scores + values + branch; }
};
LayerCost CostOf(const ModelConfig& resolved, int64_t T, bool causal);

// The same model with one level and no gates: standard attention.
ModelConfig StandardAttention(const ModelConfig& resolved);

// sum_{l < L} s^(-2l): the scores' share when s^(L-1) divides T, and its limit for L to infinity.
double ScoreFactor(int64_t levels, int64_t stride);
double ScoreFactorLimit(int64_t stride);

// cost.all_pairs, .causal, .score_factor, …: docs/analyze.md.
Json CostToJson(const ModelConfig& resolved, int64_t T);

}  // namespace hkt::analysis
