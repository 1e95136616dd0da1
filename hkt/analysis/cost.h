#pragma once

#include <cstdint>

#include "hkt/analysis/subject.h"
#include "hkt/base/config.h"
#include "hkt/nn/cost.h"

namespace hkt::analysis {

// Multiply-adds of one attention layer over one sequence of T tokens, forward (theory.md 5), part
// by part; without `causal` all T^2 pairs are counted, with it those with j <= i.
nn::AttentionCost CostOf(const ModelConfig& resolved, int64_t T, bool causal);

// The same model with one level and no gates: standard attention.
ModelConfig StandardAttention(const ModelConfig& resolved);

// sum_{l < L} s^(-2l): the scores' share when s^(L-1) divides T, and its limit for L to infinity.
double ScoreFactor(int64_t levels, int64_t stride);
double ScoreFactorLimit(int64_t stride);

// cost.all_pairs, .causal, .score_factor, …: docs/analyze.md.
Json CostToJson(const ModelConfig& resolved, int64_t T);

}  // namespace hkt::analysis
