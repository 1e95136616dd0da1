// What the backward pass does to a row of a tile: weights and dS from scores and dP, and the sums
// of dS over 2 x 2 cells.

#include <cstdint>

#if defined(HKT_KERNELS_GRADIENT_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_GRADIENT_ROWS_INL_H_
#undef HKT_KERNELS_GRADIENT_ROWS_INL_H_
#else
#define HKT_KERNELS_GRADIENT_ROWS_INL_H_
#endif

#include "hkt/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// Scores become weights P = e^(S - lse), and dP becomes dS = P (dP - delta), for the first n keys;
// both are 0 behind them, up to `filled`, a multiple of kLanes.
HWY_INLINE void RowGradients(float* HWY_RESTRICT weights, float* HWY_RESTRICT d_scores, int64_t n,
                             int64_t filled, float lse, float delta) {
  const DF d;
  const VF vl = hn::Set(d, lse), vd = hn::Set(d, delta);
  int64_t k = 0;
  for (; k + 2 * kLanes <= n; k += 2 * kLanes) {
    const VF p0 = Exp(hn::Sub(hn::Load(d, weights + k), vl));
    const VF p1 = Exp(hn::Sub(hn::Load(d, weights + k + kLanes), vl));
    const VF g0 = hn::Mul(p0, hn::Sub(hn::Load(d, d_scores + k), vd));
    const VF g1 = hn::Mul(p1, hn::Sub(hn::Load(d, d_scores + k + kLanes), vd));
    hn::Store(p0, d, weights + k);
    hn::Store(p1, d, weights + k + kLanes);
    hn::Store(g0, d, d_scores + k);
    hn::Store(g1, d, d_scores + k + kLanes);
  }
  for (; k < n; k += kLanes) {
    const VF p = Exp(hn::Sub(hn::Load(d, weights + k), vl));
    const VF g = hn::Mul(p, hn::Sub(hn::Load(d, d_scores + k), vd));
    const auto seen = hn::FirstN(d, static_cast<size_t>(n - k));
    hn::Store(hn::IfThenElseZero(seen, p), d, weights + k);
    hn::Store(hn::IfThenElseZero(seen, g), d, d_scores + k);
  }
  for (; k < filled; k += kLanes) {
    hn::Store(hn::Zero(d), d, weights + k);
    hn::Store(hn::Zero(d), d, d_scores + k);
  }
}

// coarse[c] = fine[2c] + fine[2c + 1] + the same of the row below, for c < n.
HWY_INLINE void SumPairs(const float* HWY_RESTRICT fine, int64_t n, float* HWY_RESTRICT coarse) {
  const DF d;
  for (int64_t c = 0; c < n; c += kLanes) {
    const VF lower = hn::Add(hn::Load(d, fine + 2 * c), hn::Load(d, fine + 2 * c + kTileLd));
    const VF upper =
        hn::Add(hn::Load(d, fine + 2 * c + kLanes), hn::Load(d, fine + 2 * c + kLanes + kTileLd));
#if HWY_TARGET == HWY_SCALAR
    hn::Store(hn::Add(lower, upper), d, coarse + c);
#else
    hn::Store(hn::Add(hn::ConcatEven(d, upper, lower), hn::ConcatOdd(d, upper, lower)), d,
              coarse + c);
#endif
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
