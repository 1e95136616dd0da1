#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <span>

// Mardia's kurtosis of a level's representation, kappa = E[((x-mu)^T Sigma^-1 (x-mu))^2]
// (docs/theory.md, 3.5). For a Gaussian d-vector it is d(d+2); gamma = kappa / (d(d+2)) - 1. It is
// not the kurtosis of scores, which is a ratio of moments of one number (score_kurtosis.h).

namespace hkt::analysis {

// Mean and covariance of rows, 1/n. Where rows do not fill the space (after a LayerNorm without
// GELU they lie in d - 1 dimensions), directions with less than 1e-9 of the largest eigenvalue are
// left out, and their number r stands for d everywhere; 0 where all rows are equal.
struct Spread {
  int64_t rows = 0;
  at::Tensor mean;        // [d]
  at::Tensor covariance;  // [d, d]
  at::Tensor values;      // [r], eigenvalues kept, ascending
  at::Tensor vectors;     // [d, r]

  int64_t rank() const { return values.size(0); }
  // [n, d] -> [n, r]: coordinates of covariance I, divided by sqrt(value + ridge).
  at::Tensor Whiten(const at::Tensor& rows, double ridge = 0) const;
};

// sequences[i] [n_i, d] in double. Centred on the mean, or about 0 with `centred` false: mean is
// then 0 and covariance E x x^T. Error without rows.
Spread MeasureSpread(std::span<const at::Tensor> sequences, bool centred = true);

inline constexpr std::array<double, 3> kRidges = {0, 1e-4, 1};

struct Mardia {
  int64_t sequences = 0, rows = 0, width = 0, rank = 0;  // width d, rank r
  double kappa = 0;     // b (n+1)/(n-1), b the mean of the fourth power of the Mahalanobis distance
  double gaussian = 0;  // r(r+2); E kappa of Gaussian rows, exactly
  double gamma = 0;     // kappa / gaussian - 1
  double gaussian_se = 0;   // sqrt(8 r(r+2)/n): of independent Gaussian rows
  double bootstrap_se = 0;  // 200 resamples of sequences: the rows of one depend on each other
  bool saturated = false;   // kappa > r(n-1)/4: too few rows, b cannot exceed r(n-1)
  bool too_few = false;     // below 64 sequences or 50 r rows
  // 1 + gamma with Sigma + eps tr(Sigma)/r I, eps = kRidges, each over its Gaussian value. Of
  // elliptical data all agree; a spread says that the data are not.
  std::array<double, kRidges.size()> ridge_factor{};
};

// The bootstrap resamples each sequence's share in the estimator's linearisation, mean and
// covariance included: as precise as an estimate of a standard error needs, and no pass over the
// rows per resample.
Mardia MeasureMardia(std::span<const at::Tensor> sequences, uint64_t seed = 1);

// sqrt(8 r(r+2)/n).
double GaussianKurtosisError(int64_t rank, int64_t rows);

}  // namespace hkt::analysis
