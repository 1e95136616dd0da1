#pragma once

#include <cstdint>

#include "hkt/nn/hkt_attention.h"

// Layers whose parameters are written down, not trained: what the layer reduces to, and functions
// that no layer of fewer levels and no pure attention or convolution computes (docs/theory.md, 2.6
// and 4). They change parameters of the layer that they are given, or make one in double.

namespace hkt::nn {

// Gate logits of +40 and -40: sigmoid is 1 up to less than half a rounding of a double, and 4e-18.
// No effect without gates.
void OpenGates(HktAttention& layer);
void ShutGates(HktAttention& layer);

// All fusion weight on level 0, that of the others exp(-200) of it: with open gates the layer is
// attention with Q^(0) and K^(0), with shut ones the convolution C^(0).
void KeepLevelZero(HktAttention& layer);

// Takes the fusion weight of the last level away: the layer of L - 1 levels. Needs L >= 2.
void DropLastLevel(HktAttention& layer);

// The deviation from the running mean, f_i(x) = (mean_{j <= i} x_j - x_i) / 2, by one hybrid head
// of one level: beta = 1/2, W_Q = 0, W_V = I, branch -I. x [B, T, width].
HktAttention DeviationFromRunningMean(int64_t width);

// Both act on three symbols a, b, c, the first three unit vectors of R^4, with s = 2; level 1
// carries u_v = GELU(LN(v)) of the first symbol v of each cell.

// Scores with a direction that depends on the distance: S_qp(a at p, b at q) - S_qp(b at p, a at q)
// is +1 for (p, q) = (0, 1) and -1 for (0, 2). W_V = W_O = I, and a token's score with itself is 0,
// so that log(out_q . x_p / out_q . x_q) is S_qp where the symbols at p and q occur once.
HktAttention TwoScaleDirection();

// Tells (a, c, b) from (c, a, b): coordinate 0 of its output at the third token is 4/9 and 1/3.
HktAttention OrderOfEarlierTokens();

}  // namespace hkt::nn
