#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace hkt::ops {

// The concatenated form: with the coarse rows repeated to full resolution, sum_l Q^(l)[i/s^l] .
// K^(l)[j/s^l] is one inner product of width L*D. Padding is selected away, so that NaN there meets
// no arithmetic.
struct Concatenated {
  at::Tensor q;      // [B, H, T, L*D]
  at::Tensor k;      // [B, Hkv, T, L*D]
  at::Tensor v;      // [B, Hkv, T, Dv]
  at::Tensor valid;  // [B, 1, T, 1], or undefined: every row
  at::Tensor mask;   // [B, 1, 1, T], true where a key takes part; undefined where causality or
                     // nothing decides
  bool causal;
  double scale;
};

// Gradients of a Concatenated.
struct FullGradients {
  at::Tensor q, k, v;
};

// Attention of the concatenated form in chunks of rows, from matrix products: on every device, in
// every type, sums in float32 (float64 for double). Memory O(T): the scores of a chunk, whatever T.
// Returns out [B, H, T, Dv] and lse [B, H, T]; rows of the padding hold anything.
std::tuple<at::Tensor, at::Tensor> ForwardChunked(const Concatenated& x);

// d_out and out 0 in the padding, lse there infinity, so that its weights are 0.
FullGradients BackwardChunked(const Concatenated& x, const at::Tensor& d_out, const at::Tensor& out,
                              const at::Tensor& lse);

}  // namespace hkt::ops
