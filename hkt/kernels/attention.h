#pragma once

// Multi-scale attention with several score matrices, one a resolution, in one pass over tiles.
//
//   S_ij = scale * sum_l  q^(l)[floor(i / s^l)] . k^(l)[floor(j / s^l)],     l = 0 … L-1
//   out_i = sum_j softmax_j(S_ij) v_j,   lse_i = log sum_j exp(S_ij)
//
// over j <= i (causal) or all j, and j < length of the sequence.
//
// Shapes: queries[l] [B, H, T_l, D], keys[l] [B, Hkv, T_l, D], value [B, Hkv, T, Dv], out and d_out
// [B, H, T, Dv], lse [B, H, T] contiguous; T_0 = T, T_l = ceil(T_{l-1} / s). Query head h reads
// key/value head floor(h / (H / Hkv)). The fusion weights lambda_l of the paper (arXiv 2604.08829)
// are folded into the queries by the caller; L = 1 is standard attention.
//
// Backward, with P = exp(S - lse) and delta_i = out_i . d_out_i:
//   dP_ij = d_out_i . v_j            dS_ij = P_ij (dP_ij - delta_i)
//   d_value_j = sum_i P_ij d_out_i
//   dS^(l) = dS summed over its s^l x s^l cells
//   d_queries[l] = scale dS^(l) k^(l)      d_keys[l] = scale dS^(l)^T q^(l)
// (over all H / Hkv query heads of a key/value head).
//
// A row without keys (length 0, or a padded row i >= length) has out = 0, lse = -inf and zero
// gradients. Positions at or behind the length are never read, so that nothing there, NaN included,
// changes a bit of the rest. At later positions j > i a key may hold NaN, a value anything finite.
//
// Memory: nothing T x T. Beside operands a forward pass takes tiles of every worker and the packed
// keys and values of two waves of heads (of one with one worker), a wave being half a MiB a worker
// or one key/value head; a backward pass tiles of every worker and B H T floats, and where
// d_queries are not float32 rows of whole vectors, float32 sums of them, 16 MiB or one key/value
// head. For s != 2 or more than six levels every worker of the backward pass takes the sums of a
// whole key/value head, and heads are all that is spread over workers. Outputs may not overlap
// inputs or each other. No alignment is needed. Sums are float32. Results are bitwise the same for
// every number of workers, and a sequence's are the same alone, in a batch and with more padding.
//
// Cost, causal, in floating-point operations of the useful half (h = sum_l s^(-2l), 1.3125 at L =
// 3, s = 2): forward B H T^2 (h D + Dv), backward B H T^2 (3 h D + 2 Dv).
//
// Sizes are taken as given: hkt/ops checks them. 1 <= L <= kMaxLevels, s >= 2, D >= 1;
// B, H, T or Dv may be 0. Throws std::bad_alloc when scratch cannot be had, before anything is
// written.

#include <cstdint>

#include "hkt/kernels/parallel.h"
#include "hkt/kernels/tensor.h"

namespace hkt::kernels {

constexpr int kMaxLevels = 64;

struct AttentionParams {
  int64_t B = 0, H = 0, Hkv = 0, T = 0, D = 0, Dv = 0;
  int L = 1;
  int64_t stride = 2;
  float scale = 1;
  bool causal = true;
  Type type = Type::kFloat32;        // of every tensor but lse
  const int64_t* lengths = nullptr;  // [B] contiguous, or null: T each; taken as if cut to 0 … T
  const Input* queries = nullptr;    // L of them
  const Input* keys = nullptr;       // L of them
  Input value;
};

void AttentionForward(const AttentionParams& params, const Output& out, float* lse,
                      const Parallel& parallel = {});

struct AttentionGradients {
  const Output* queries = nullptr;  // L of them
  const Output* keys = nullptr;     // L of them
  Output value;
};

// out and lse as AttentionForward left them.
void AttentionBackward(const AttentionParams& params, const Input& out, const float* lse,
                       const Input& d_out, const AttentionGradients& gradients,
                       const Parallel& parallel = {});

}  // namespace hkt::kernels
