#pragma once

#include <cstdint>

#include "hkt/base/dims.h"
#include "hkt/kernels/attention.h"

namespace hkt::kernels {

// The positions of every level, and which of them a range of tokens touches.
struct Levels {
  int L = 1;
  bool pairs = false;        // see LevelsOf
  int64_t step[kMaxLevels];  // s^l tokens a position

  int64_t First(int l, int64_t token) const { return token / step[l]; }
  // Positions of level l under tokens first … first + n - 1, n >= 1.
  int64_t Count(int l, int64_t first, int64_t n) const {
    return (first + n - 1) / step[l] - first / step[l] + 1;
  }
  // At most that many, wherever a range of at most n tokens starts (at a multiple of the tile size
  // when `pairs`).
  int64_t Most(int l, int64_t n) const {
    return pairs || l == 0 ? CeilDiv(n, step[l]) : (n - 1) / step[l] + 2;
  }
};

// `pairs`: s = 2 and tiles, which start at multiples of `alignment` tokens, start at a position of
// every level, so that a coarse element stands for exactly 2 x 2 of the next level, within its
// tile. This is the fast case; L = 1 is one of it. Otherwise tiles may begin inside a position.
inline Levels LevelsOf(const AttentionParams& params, int64_t alignment) {
  constexpr int64_t kMost = int64_t{1} << 40;  // far above any T: one position
  Levels levels;
  levels.L = params.L;
  int64_t step = 1;
  for (int l = 0; l < params.L; ++l) {
    levels.step[l] = step;
    step = step > kMost / params.stride ? kMost : step * params.stride;
  }
  levels.pairs =
      params.L == 1 || (params.stride == 2 && alignment % levels.step[params.L - 1] == 0);
  return levels;
}

// Valid tokens of sequence b.
inline int64_t LengthOf(const AttentionParams& params, int64_t b) {
  if (params.lengths == nullptr) return params.T;
  const int64_t length = params.lengths[b];
  return length < 0 ? 0 : (length > params.T ? params.T : length);
}

}  // namespace hkt::kernels
