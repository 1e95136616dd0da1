#pragma once

// One step of the pyramid: a coarser copy of the sequence, by a causal strided convolution.
//
//   y[tau, c]  = depthwise_bias[c] + sum_{a=0}^{k-1} depthwise_weight[c, a] x[tau s - (k-1) + a, c]
//   z[tau]     = pointwise_weight y[tau] + pointwise_bias
//   n[tau, c]  = (z[tau, c] - mean_c z[tau]) / sqrt(var_c z[tau] + eps)
//   out        = GELU(n * norm_weight + norm_bias)              (the exact one, with erf)
//
// with x = 0 before the first token. Shapes: x [B, T, d], depthwise_weight [d, k],
// pointwise_weight [d, d] (output, input), all others [d], out [B, ceil(T / s), d]. It is X^(l) =
// GELU(LayerNorm(DSConv(X^(l-1)))) of the paper (arXiv 2604.08829); kernel width, left padding and
// the exact GELU are the choices of docs/model.md.
//
// x, out, d_out and d_x may have any strides (`head` is not used) and the type `type`; weights and
// their gradients are contiguous float32. Sums are float32. Outputs may not overlap inputs or each
// other. No alignment is needed. Results are bitwise the same for every number of workers: sums
// over rows are cut at fixed positions and added in order.
//
// Cost in floating-point operations: forward 2 B ceil(T/s) d (d + k), backward three times that.
//
// Without a pointwise_weight (null) it is the depthwise convolution alone, out = y: the first half
// of the branch C^(l) of a hybrid head (stride 1). What comes after the depthwise convolution is
// then neither read nor written, its gradients included. Cost: forward 2 B ceil(T/s) d k, backward
// twice that; bound by memory.
//
// Sizes are taken as given: hkt/ops checks them. d, k, s >= 1; B or T may be 0. Throws
// std::bad_alloc when scratch cannot be had.

#include <cstdint>

#include "hkt/kernels/parallel.h"
#include "hkt/kernels/tensor.h"

namespace hkt::kernels {

struct DownsampleParams {
  int64_t B = 0, T = 0, d = 0, k = 3;
  int64_t stride = 2;
  float eps = 1e-5F;
  Type type = Type::kFloat32;  // of x, out, d_out and d_x
  Input x;
  const float* depthwise_weight = nullptr;
  const float* depthwise_bias = nullptr;
  const float* pointwise_weight = nullptr;
  const float* pointwise_bias = nullptr;
  const float* norm_weight = nullptr;
  const float* norm_bias = nullptr;

  bool OnlyDepthwise() const { return pointwise_weight == nullptr; }
};

void DownsampleForward(const DownsampleParams& params, const Output& out,
                       const Parallel& parallel = {});

struct DownsampleGradients {
  Output x;
  float* depthwise_weight = nullptr;
  float* depthwise_bias = nullptr;
  float* pointwise_weight = nullptr;
  float* pointwise_bias = nullptr;
  float* norm_weight = nullptr;
  float* norm_bias = nullptr;
};

// Everything but x and the weights is recomputed.
void DownsampleBackward(const DownsampleParams& params, const Input& d_out,
                        const DownsampleGradients& gradients, const Parallel& parallel = {});

}  // namespace hkt::kernels
