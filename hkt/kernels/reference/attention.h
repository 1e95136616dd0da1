#pragma once

// Multi-scale attention written down as the paper has it (arXiv 2604.08829), in double and in plain
// loops, T x T matrices and all. It is what the kernels of hkt/kernels/attention.h are held to, and
// the text to read before them; docs/hkt-attention.md follows it with numbers. Only tests call it.
//
// Forward, head by head:
//   1. level scores   S^(l)_IJ = scale * q^(l)_I . k^(l)_J
//   2. fusion         S_ij = sum_l S^(l)[floor(i / s^l), floor(j / s^l)]
//   3. mask           S_ij = -inf for j > i, if causal
//   4. softmax        P_ij = exp(S_ij - lse_i),   lse_i = log sum_j exp(S_ij)
//   5. values         out_i = sum_j P_ij v_j
// The fusion weights lambda_l are folded into the queries, as in the kernels.
//
// A sequence of length n < T is treated as if it ended there: nothing at or behind position n is
// read, its rows of out are 0, of lse -inf, and its gradients 0. With the causal mask no key of a
// later position is read for a row either.
//
// Cost: forward B H T^2 (h D + L + Dv) multiply-adds, h = sum_l s^(-2l); the backward about three
// times that. Memory: L + 1 matrices of T x T.

#include <cstdint>
#include <vector>

namespace hkt::kernels::reference {

// One call: the sizes and the operands, contiguous.
struct Attention {
  int64_t B = 1, H = 1, Hkv = 1, T = 1, D = 1, Dv = 1;
  int64_t L = 1, stride = 2;
  double scale = 1;
  bool causal = true;
  std::vector<int64_t> lengths = {};  // [B], or empty: T each; taken as if cut to 0 … T
  std::vector<std::vector<double>> queries = {};  // L of [B, H, T_l, D]
  std::vector<std::vector<double>> keys = {};     // L of [B, Hkv, T_l, D]
  std::vector<double> value = {};                 // [B, Hkv, T, Dv]
};

struct AttentionOutput {
  std::vector<double> out;  // [B, H, T, Dv]
  std::vector<double> lse;  // [B, H, T]
};

AttentionOutput AttentionForward(const Attention& attention);

struct AttentionGradients {
  std::vector<std::vector<double>> queries, keys;
  std::vector<double> value;
};

// The gradients of sum(out * d_out); d_out [B, H, T, Dv]. The forward is computed again.
AttentionGradients AttentionBackward(const Attention& attention, const std::vector<double>& d_out);

// What stands between the passes for one head of one sequence: the matrices are [n, n], those of a
// level [n_l, n_l], with n the sequence's length and n_l = ceil(n / s^l).
struct AttentionMatrices {
  std::vector<std::vector<double>> level_scores;    // L; 0 where wholly masked
  std::vector<double> scores, weights;              // S and P
  std::vector<double> d_weights, d_scores;          // dP and dS
  std::vector<std::vector<double>> d_level_scores;  // L
};

AttentionMatrices Matrices(const Attention& attention, const std::vector<double>& d_out, int64_t b,
                           int64_t h);

}  // namespace hkt::kernels::reference
