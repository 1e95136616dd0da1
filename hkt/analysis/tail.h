#pragma once

#include <span>
#include <vector>

// The hierarchical term and how it decays with the number of levels (docs/theory.md, 3.2). A target
// S* = sum_l a_l St_l of undecimated level scores has terms t_l = |a_l| |St_l|.

namespace hkt::analysis {

// [L] for L = 0 … terms.size(): (sum_{l >= L} t_l)^2, which bounds E_H(L) of any target.
std::vector<double> TailBounds(std::span<const double> terms);

// rho_hat, exp of the least-squares slope of log t_l on l; NaN with fewer than two terms above 0.
// That terms decay geometrically is a property of the target: nothing here presumes it.
double DecayRate(std::span<const double> terms);

}  // namespace hkt::analysis
