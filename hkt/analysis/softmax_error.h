#pragma once

// From an error D of the scores of one row to an error of its attention p (docs/theory.md, 3.7):
// p = softmax(a), p' = softmax(a - D), B = max D - min D over the keys of the row.

namespace hkt::analysis {

// KL(p || p') <= B^2 / 8.
double KlBoundOfRange(double range);
// KL(p || p') <= Var_p(D) (e^B - 1 - B) / B^2, which goes to Var_p(D) / 2 with B.
double KlBoundOfVariance(double variance, double range);
// |p - p'|_1 <= B / 2.
double L1BoundOfRange(double range);

}  // namespace hkt::analysis
