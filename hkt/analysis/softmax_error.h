#pragma once

#include <ATen/core/Tensor.h>

// From an error D of the scores of one row to an error of its attention p (docs/theory.md, 3.7):
// p = softmax(a), p' = softmax(a - D), B = max D - min D over the keys of the row. Tensors of any
// shape, a value a row.

namespace hkt::analysis {

// KL(p || p') <= B^2 / 8.
at::Tensor KlBoundOfRange(const at::Tensor& range);
// KL(p || p') <= Var_p(D) (e^B - 1 - B) / B^2, which goes to Var_p(D) / 2 with B. B counts as at
// most 700, above which e^B is not finite; the bound by the range is smaller long before.
at::Tensor KlBoundOfVariance(const at::Tensor& variance, const at::Tensor& range);
// |p - p'|_1 <= B / 2.
at::Tensor L1BoundOfRange(const at::Tensor& range);

}  // namespace hkt::analysis
