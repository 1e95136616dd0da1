#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace hkt::ops {

// Which positions hold a token. lengths [B] int64 -> bool [B, positions]; `step` tokens a position
// (s^l at level l), a position is valid when its first token is.
at::Tensor ValidRows(const at::Tensor& lengths, const c10::SymInt& positions, int64_t step = 1);

// x where `valid` (broadcast), 0 elsewhere: a select, never a product, so that NaN in the padding
// goes nowhere, forward or backward.
at::Tensor ZeroPadding(const at::Tensor& x, const at::Tensor& valid);

}  // namespace hkt::ops
