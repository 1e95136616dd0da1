#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

// Bounds on rounding errors, derived and never tuned: number of terms times unit roundoff times
// largest magnitudes.

namespace hkt::testing {

// Unit roundoff of a type with `bits` bits of significand (24 float, 53 double, 8 bfloat16, 11
// half).
constexpr double UnitRoundoff(int bits) { return 1.0 / static_cast<double>(int64_t{1} << bits); }

// An inner product of n terms: gamma_n * sum |a||b| (Higham, Accuracy and Stability, 3.1), with n +
// 2 for the roundings of the scale and of the store.
constexpr double InnerProductBound(double unit, double terms, double a_max, double b_max) {
  return (terms + 2) * unit * terms * a_max * b_max;
}

// Multi-scale attention computed with unit roundoff `unit` from inputs of at most these magnitudes.
struct AttentionBound {
  double unit;                            // of the sums
  double T, D, Dv, L;                     // tokens, head widths, levels
  double q_max, k_max, v_max, d_out_max;  // largest magnitudes of the inputs
  double scale;

  // |S_computed - S|: one inner product of L*D terms.
  double Score() const { return InnerProductBound(unit, L * D, q_max, k_max) * std::abs(scale); }

  // exp multiplies a relative error 2 * Score into every weight (numerator and normaliser) and adds
  // a few roundings of its own; the weights sum to 1, so P V carries that relative error plus a sum
  // of T terms.
  double Relative() const { return 2 * Score() + (T + 8) * unit; }
  double Output() const { return Relative() * v_max; }
  double LogSumExp() const { return Score() + (T + 8) * unit; }

  // Backward. |dP| <= g, g = Dv * |d_out| * |v|; dS = P (dP - delta), sum_j |dS_ij| <= 2 g,
  // relative error as of P twice (P itself and delta) plus the inner product of Dv terms. A query's
  // gradient sums one row of dS over `rows` = s^l rows of its cell; a key's sums a column, at most
  // T rows, G query heads and s^l keys a cell.
  double d_scores() const {
    return 2 * Dv * d_out_max * v_max * (2 * Relative() + (Dv + 4) * unit);
  }
  double d_query(double rows) const {
    return rows * std::abs(scale) * k_max *
           (d_scores() + (T + rows) * unit * 2 * Dv * d_out_max * v_max);
  }
  double d_key(double heads) const {
    return T * heads * std::abs(scale) * q_max *
           (d_scores() + T * heads * unit * 2 * Dv * d_out_max * v_max);
  }
  double d_value(double heads) const {
    return T * heads * d_out_max * (Relative() + T * heads * unit);
  }
};

}  // namespace hkt::testing
