#pragma once

#include <cstdint>

// The letters of the paper, one meaning each in the whole code base:
//   B batch · H query heads · Hkv key/value heads (H is a multiple of it) · T tokens · L levels,
//   level index l = 0 … L-1 · Tl positions of level l: T_0 = T, T_l = ceil(T_{l-1} / s) · d
//   (d_model) model width · D head width · Dv value head width · s (stride) downsampling stride,
//   the same at every level · k (kernel_size) width of the causal convolutions · lambda fusion
//   weight of a level · beta gate of a level (1 = attention, 0 = causal convolution)
// Shapes are written [B, H, T, D]; the gradient of x is d_x.

namespace hkt {

// ceil(a / b) for a >= 0, b > 0.
constexpr int64_t CeilDiv(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// T_l: positions of level `level` over T tokens. Taking the ceiling level by level equals ceil(T /
// s^l).
constexpr int64_t LevelLength(int64_t T, int64_t stride, int64_t level) {
  for (int64_t l = 0; l < level; ++l) T = CeilDiv(T, stride);
  return T;
}

}  // namespace hkt
