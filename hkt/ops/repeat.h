#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hkt::ops {

// Repeats every position s^level times along dimension `dim` and cuts to T: the coarse row under
// every token.
at::Tensor RepeatToFull(const at::Tensor& x, int64_t repeats, int64_t dim, const c10::SymInt& T);

}  // namespace hkt::ops
