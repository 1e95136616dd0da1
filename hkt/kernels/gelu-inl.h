// The normal distribution function, which is the exact (erf) GELU and its derivative:
//   GELU(h) = h Phi(h),   GELU'(h) = Phi(h) + h phi(h),   Phi(h) = (1 + erf(h / sqrt 2)) / 2.

#if defined(HKT_KERNELS_GELU_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_GELU_INL_H_
#undef HKT_KERNELS_GELU_INL_H_
#else
#define HKT_KERNELS_GELU_INL_H_
#endif

#include "hkt/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// cdf = Phi(h) and density = phi(h). The tail Q(u) = Phi(-u), u = |h|, is e^(-u^2/2) R(u) with
// R(u) = erfcx(u / sqrt 2) / 2, which falls smoothly from 1/2 to 1 / (u sqrt(2 pi)). With r = 1 /
// (3 + u) and q = 6 r - 1, R = r P(q), P a polynomial of degree 8: a minimax fit of relative error
// 4.2e-8 on 0 <= u <= 13.5, where Q leaves the normal floats (form: M. Shepherd and J. Laframboise,
// Math. Comp. 36, 1981; coefficients: our own fit, rounded to float 6.4e-8). Phi = Q or 1 - Q, so
// that both tails keep their digits, which (1 + erf) / 2 does not.
//
// With u = 2^-24: relative error of Q at most (kNormalRoundings + 1.5 h^2) u; the second term is
// that of the rounded exponent. Measured on every target (gelu_test.cc): GELU at most 11 u |GELU|
// where |GELU| > 0.001, its derivative 3 u. Below 2^-126 e^(-h^2/2) is taken as 0. NaN stays NaN.
constexpr double kNormalRoundings = 16;

HWY_INLINE void Normal(VF h, VF& cdf, VF& density) {
  const DF d;
  const VF u = hn::Abs(h), one = hn::Set(d, 1.0F);
  // log2(e) / 2
  const VF t = hn::Mul(hn::Mul(u, u), hn::Set(d, -0.72134752044448170F));
  const VF e = hn::IfThenZeroElse(hn::Lt(t, hn::Set(d, -126.0F)), Exp2(t));
  const VF r = hn::Div(one, hn::Add(hn::Set(d, 3.0F), u));
  const VF q = hn::MulAdd(hn::Set(d, 6.0F), r, hn::Set(d, -1.0F));
  VF p = hn::Set(d, -0.000270632969F);
  p = hn::MulAdd(p, q, hn::Set(d, 0.000909029332F));
  p = hn::MulAdd(p, q, hn::Set(d, 0.00107712008F));
  p = hn::MulAdd(p, q, hn::Set(d, -0.00692789722F));
  p = hn::MulAdd(p, q, hn::Set(d, -0.0104796616F));
  p = hn::MulAdd(p, q, hn::Set(d, 0.0472569056F));
  p = hn::MulAdd(p, q, hn::Set(d, 0.230019286F));
  p = hn::MulAdd(p, q, hn::Set(d, 0.50933224F));
  p = hn::MulAdd(p, q, hn::Set(d, 0.729083657F));
  const VF tail = hn::Mul(hn::Mul(p, r), e);
  cdf = hn::IfThenElse(hn::Lt(h, hn::Zero(d)), tail, hn::Sub(one, tail));
  density = hn::Mul(e, hn::Set(d, 0.39894228040143268F));  // 1 / sqrt(2 pi)
}

HWY_INLINE VF Gelu(VF h) {
  VF cdf, density;
  Normal(h, cdf, density);
  return hn::Mul(h, cdf);
}

HWY_INLINE VF GeluDerivative(VF h) {
  VF cdf, density;
  Normal(h, cdf, density);
  return hn::MulAdd(h, density, cdf);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
