#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

// The hierarchy without downsampling (docs/theory.md: the undecimated pyramid): every level has T
// positions, and level l reads level l-1 at distances of s^(l-1) tokens where the pyramid reads
// neighbours; at the tokens tau s^l it is the pyramid's X^(l)_tau. An ablation: T-long scores of
// every level cost L times one level's.

namespace hkt::nn {

// s^l; saturates far above any sequence.
int64_t LevelStep(int64_t stride, size_t l);

// Applies a causal map of sequences, [N, n, d] -> [N, n, d'], to the `dilation` interleaved
// sequences of x [B, T, d] (positions p, p + dilation, …), each for itself -> [B, T, d'].
at::Tensor InPhases(const at::Tensor& x, int64_t dilation,
                    const std::function<at::Tensor(const at::Tensor&)>& map);

// ops::multiscale_attention for levels that all have T positions, as one attention: queries, with
// w_l score_gain folded in, and keys side by side, heads of width L D, scale 1/sqrt(D).
//   queries[l] [B, H, T, D], keys[l] [B, Hkv, T, D], value [B, Hkv, T, Dv], logits [H, L],
//   branches[l] [B, H, T, Dv], empty without gates -> [B, H, T, Dv]
at::Tensor UndecimatedAttention(const std::vector<at::Tensor>& queries,
                                const std::vector<at::Tensor>& keys, const at::Tensor& value,
                                const at::Tensor& level_logits,
                                const std::optional<at::Tensor>& gate_logits,
                                const std::vector<at::Tensor>& branches, double score_gain,
                                bool causal, const std::optional<at::Tensor>& lengths);

}  // namespace hkt::nn
