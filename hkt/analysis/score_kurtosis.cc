#include "hkt/analysis/score_kurtosis.h"

#include <ATen/TensorOperators.h>

#include <limits>

namespace hkt::analysis {

double Kurtosis(const at::Tensor& values) {
  PooledKurtosis one;
  one.Add(values);
  return one.value();
}

// Central sums of two groups combine exactly (Pébay, SAND2008-6212, 2008), without the cancellation
// of raw moments.
void PooledKurtosis::Add(const at::Tensor& values) {
  if (values.numel() == 0) return;
  const at::Tensor x = values.to(at::kDouble);
  const auto nb = static_cast<double>(x.numel());
  const double mean_b = x.mean().item<double>();
  const at::Tensor y = x - mean_b, y2 = y * y;
  const double b2 = y2.sum().item<double>(), b3 = (y2 * y).sum().item<double>();
  const double b4 = (y2 * y2).sum().item<double>();
  const double na = count_, n = na + nb, d = mean_b - mean_;
  m4_ += b4 + d * d * d * d * na * nb * (na * na - na * nb + nb * nb) / (n * n * n) +
         6 * d * d * (na * na * b2 + nb * nb * m2_) / (n * n) + 4 * d * (na * b3 - nb * m3_) / n;
  m3_ += b3 + d * d * d * na * nb * (na - nb) / (n * n) + 3 * d * (na * b2 - nb * m2_) / n;
  m2_ += b2 + d * d * na * nb / n;
  mean_ += d * nb / n;
  count_ = n;
}

double PooledKurtosis::value() const {
  // Below it a spread is the rounding of equal values.
  constexpr double kEqual = 1e-12;
  return m2_ > count_ * kEqual * kEqual * mean_ * mean_ ? count_ * m4_ / (m2_ * m2_)
                                                        : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace hkt::analysis
