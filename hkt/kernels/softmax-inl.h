// exp and the running softmax of a tile of scores.

#include <cstdint>

#if defined(HKT_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_SOFTMAX_INL_H_
#undef HKT_KERNELS_SOFTMAX_INL_H_
#else
#define HKT_KERNELS_SOFTMAX_INL_H_
#endif

#include "hkt/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// 2^t for t <= 0 (and a little above), relative error at most 1.7e-7: t = n + f with n the nearest
// integer, 2^f by a minimax polynomial on [-1/2, 1/2] whose constant is 1 so that 2^0 = 1. Below
// -126 the result is that of -126, 1.2e-38: next to the row's largest weight, 1, it is nothing. NaN
// stays NaN: Max returns its second operand when the comparison fails, but for SCALAR's, and 2^n is
// a factor, as adding n to the exponent of a NaN can make a number of it.
HWY_INLINE VF Exp2(VF t) {
  const DF d;
#if HWY_TARGET == HWY_SCALAR
  t = hn::IfThenElse(hn::Lt(t, hn::Set(d, -126.0F)), hn::Set(d, -126.0F), t);
#else
  t = hn::Max(hn::Set(d, -126.0F), t);
#endif
#if HWY_TARGET <= HWY_AVX3
  const VF n = hn::Round(t);
  const VF f = hn::Sub(t, n);
#else
  // Adding 1.5 * 2^23 leaves the rounded integer in the low bits; 127 more, the exponent of 2^n.
  const VF magic = hn::Set(d, 12582912.0F + 127);
  const VF n = hn::Add(t, magic);
  const VF f = hn::Sub(t, hn::Sub(n, magic));
#endif
  VF p = hn::Set(d, 0.001326472706540304F);
  p = hn::MulAdd(p, f, hn::Set(d, 0.009671512648913548F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.055507337436907944F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.24022242085173176F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.6931469775988574F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
#if HWY_TARGET <= HWY_AVX3
  return VF{_mm512_scalef_ps(p.raw, n.raw)};
#else
  const hn::RebindToSigned<DF> di;
  return hn::Mul(p, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, n))));
#endif
}

// e^x for x <= 0: e^0 = 1, so that the largest score of a row has the weight 1 whatever its size.
// The difference of scores is taken before it is brought to base 2: packing log2 e into the keys
// would save the product, but then the saved lse, in natural units, could not say exactly what a
// score of a million was.
HWY_INLINE VF Exp(VF x) { return Exp2(hn::Mul(x, hn::Set(DF(), 1.44269504F))); }

// Lanes 0 … n - 1, n < kLanes.
HWY_INLINE hn::Mask<DF> FirstLanes(int64_t n) { return hn::FirstN(DF(), static_cast<size_t>(n)); }

// The largest of `start` and row[0 … n - 1].
HWY_INLINE float RowMax(const float* HWY_RESTRICT row, int64_t n, float start) {
  const DF d;
  const int64_t whole = n / kLanes * kLanes;
  VF m0 = hn::Set(d, start), m1 = m0, m2 = m0, m3 = m0;
  int64_t k = 0;
  for (; k + 4 * kLanes <= whole; k += 4 * kLanes) {
    m0 = hn::Max(m0, hn::Load(d, row + k));
    m1 = hn::Max(m1, hn::Load(d, row + k + kLanes));
    m2 = hn::Max(m2, hn::Load(d, row + k + 2 * kLanes));
    m3 = hn::Max(m3, hn::Load(d, row + k + 3 * kLanes));
  }
  for (; k < whole; k += kLanes) m0 = hn::Max(m0, hn::Load(d, row + k));
  if (whole < n) {
    m1 = hn::Max(m1, hn::IfThenElse(FirstLanes(n - whole), hn::Load(d, row + whole), m1));
  }
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(m0, m1), hn::Max(m2, m3))));
}

// row[k] becomes e^(row[k] - max) for k < n and 0 up to `filled`, a multiple of kLanes; the lanes
// of `sum` gain the weights. Sums stay in lanes until the row is done.
HWY_INLINE void RowWeights(float* HWY_RESTRICT row, int64_t n, int64_t filled, float max,
                           float* HWY_RESTRICT sum, VF start) {
  const DF d;
  const VF m = hn::Set(d, max);
  const int64_t whole = n / kLanes * kLanes;
  VF s0 = start, s1 = hn::Zero(d);
  int64_t k = 0;
  for (; k + 2 * kLanes <= whole; k += 2 * kLanes) {
    const VF p0 = Exp(hn::Sub(hn::Load(d, row + k), m));
    const VF p1 = Exp(hn::Sub(hn::Load(d, row + k + kLanes), m));
    hn::Store(p0, d, row + k);
    hn::Store(p1, d, row + k + kLanes);
    s0 = hn::Add(s0, p0);
    s1 = hn::Add(s1, p1);
  }
  if (k < whole) {
    const VF p = Exp(hn::Sub(hn::Load(d, row + k), m));
    hn::Store(p, d, row + k);
    s0 = hn::Add(s0, p);
    k += kLanes;
  }
  if (k < n) {
    const VF p = hn::IfThenElseZero(FirstLanes(n - k), Exp(hn::Sub(hn::Load(d, row + k), m)));
    hn::Store(p, d, row + k);
    s1 = hn::Add(s1, p);
    k += kLanes;
  }
  for (; k < filled; k += kLanes) hn::Store(hn::Zero(d), d, row + k);
  hn::Store(hn::Add(s0, s1), d, sum);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
