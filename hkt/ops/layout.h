#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hkt::ops {

// [B, H, T, D] laid out as [B, T, H, D] memory, so that the projections around the attention meet
// contiguous rows; copies only what lies otherwise.
inline at::Tensor AsRowMemory(const at::Tensor& x) {
  return x.transpose(1, 2).contiguous().transpose(1, 2);
}

// Tokens a position at the next level. Saturates far above any T: such a level has one position,
// and only that counts.
inline int64_t NextStep(int64_t step, int64_t stride) {
  constexpr int64_t kMost = int64_t{1} << 40;
  return step > kMost / stride ? kMost : step * stride;
}

// [B, T_l] -> [B, 1, T_l, 1], to select rows of [B, H, T_l, D].
inline at::Tensor AsHeads(const at::Tensor& valid) { return valid.unsqueeze(1).unsqueeze(3); }

}  // namespace hkt::ops
