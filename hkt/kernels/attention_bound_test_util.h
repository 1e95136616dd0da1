#pragma once

#include <vector>

#include "hkt/kernels/reference/attention.h"
#include "hkt/testing/element.h"

// How far float32 kernels may be from the reference, element by element. AttentionBound
// (hkt/testing/error_bound.h) is one number a tensor, from largest magnitudes: for a key's gradient
// over 500 tokens that number is above the gradient itself and sees nothing. Here the same rules
// are followed through the sums with the magnitudes that are there.
//
// u = 2^-24. Sums in any order of n terms: n u times the sum of magnitudes. First order throughout,
// but for the factor (1 + relative error) where that may be large.
//
//   A_ij      = |scale| sum_l |q|.|k|, so |S_ij| <= A_ij
//   eS_ij     = (L D + 6) u A_ij: the sum; scale, its product, with log2 e, S - m, and one to spare
//   relP_ij   = exp(eS_ij + max_j' eS_ij') - 1 + (2 T + 32) u: numerator and sum of the softmax,
//               each with T additions, rescaling by the running maximum and 8 u for exp
//   eOut_i    = sum_j P_ij relP_ij |v_j| + rounding to the type
//   eLse_i    = max_j eS_ij + (T + 16) u + 4 u |lse_i|
//   relB_ij   = exp(eS_ij + eLse_i) - 1 + 16 u: the weights of the backward, exp(S - lse)
//   eDelta_i  = |d_out_i| . eOut_i + (Dv + 4) u |out_i| . |d_out_i|
//   edS_ij    = P_ij (|dP_ij - delta_i| relB_ij + (1 + relB_ij) ((Dv + 8) u |d_out_i| . |v_j|
//               + eDelta_i + 4 u |delta_i|))
//   e_d_value = sum_i P_ij (relB_ij + (T G + 8) u) |d_out_i|, G = H / Hkv
//   e_d_q     = |scale| sum (edS_ij + N u |dS_ij|) |k|, likewise e_d_k; N = 2 T + 16 additions in a
//               row, as cells are summed by rows, columns and then cells; T G more for keys
//
// and the rounding to the type. Weights below 2^-120 may be anything from 0 to that.

namespace hkt::kernels {

struct AttentionBounds {
  reference::AttentionOutput output;
  reference::AttentionGradients gradients;
};

// `output` and `gradients` are the reference's for `attention` and `d_out`.
AttentionBounds BoundsOf(const reference::Attention& attention, const std::vector<double>& d_out,
                         const reference::AttentionOutput& output,
                         const reference::AttentionGradients& gradients, testing::Element element);

}  // namespace hkt::kernels
