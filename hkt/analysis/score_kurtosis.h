#pragma once

#include <ATen/core/Tensor.h>

// Kurtosis of the distribution of scores, E(s - mean)^4 / (E(s - mean)^2)^2: 3 for a Gaussian. It
// is taken within one sequence, one head and one level, and then averaged: pooling distributions of
// unlike variance is a scale mixture and raises it by itself (docs/theory.md, 3.5g).

namespace hkt::analysis {

// Of all elements, in double; NaN where they are all equal.
double Kurtosis(const at::Tensor& values);

// Raw moments that sum up over sequences, for the pooled figure beside the mean.
class PooledKurtosis {
 public:
  void Add(const at::Tensor& values);
  double value() const;

 private:
  double count_ = 0, mean_ = 0, m2_ = 0, m3_ = 0, m4_ = 0;  // central sums
};

}  // namespace hkt::analysis
