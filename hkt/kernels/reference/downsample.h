#pragma once

// hkt/kernels/downsample.h in double and in plain loops: what the SIMD kernels are held to, and the
// place to read what they compute. Four passes, each beside its backward pass.

#include <cstdint>
#include <vector>

namespace hkt::kernels::reference {

using Vector = std::vector<double>;

// Everything is contiguous: x [B, T, d], depthwise_weight [d, k], pointwise_weight [d, d] (output,
// input), the rest [d]. An empty pointwise_weight leaves pass 1 alone: the result is y.
struct Downsample {
  int64_t B = 0, T = 0, d = 0, k = 3, stride = 2;
  double eps = 1e-5;
  Vector x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias, norm_weight,
      norm_bias;
};

// [B, ceil(T / s), d].
Vector DownsampleForward(const Downsample& params);

// Each of the shape of its namesake above.
struct DownsampleGradients {
  Vector x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias, norm_weight,
      norm_bias;
};

DownsampleGradients DownsampleBackward(const Downsample& params, const Vector& d_out);

// GELU(h) = h Phi(h) and its derivative Phi(h) + h phi(h), Phi and phi the distribution function
// and the density of the normal distribution.
double Gelu(double h);
double GeluDerivative(double h);

}  // namespace hkt::kernels::reference
