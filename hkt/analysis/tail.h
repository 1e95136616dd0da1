#pragma once

#include <cstdint>
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

// C^2 rho^2L / (1 - rho)^2, a bound on E_H(L) if t_l <= C rho^l for all l.
double GeometricBound(double C, double rho, int64_t L);

// C^2 rho^2L / (1 - rho^2): E_H(L) if t_l = C rho^l for all l and the St_l are orthogonal.
double OrthogonalTail(double C, double rho, int64_t L);

}  // namespace hkt::analysis
