#include "hkt/analysis/kurtosis.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

#include "hkt/base/error.h"
#include "hkt/base/random.h"

namespace hkt::analysis {
namespace {

constexpr double kRankTolerance = 1e-9;
constexpr double kEqualRows = 1e-12;  // of their size, far above rounding
constexpr int kResamples = 200;

// Standard deviation over resamples of the sequences of sum(share) / sum(rows).
double BootstrapError(const std::vector<double>& shares, const std::vector<double>& rows,
                      uint64_t seed) {
  Random random({seed, 4242});
  double sum = 0, squares = 0;
  for (int resample = 0; resample < kResamples; ++resample) {
    double share = 0, count = 0;
    for (size_t i = 0; i < shares.size(); ++i) {
      const size_t drawn = random.Below(shares.size());
      share += shares[drawn];
      count += rows[drawn];
    }
    sum += share / count;
    squares += share / count * (share / count);
  }
  const double mean = sum / kResamples;
  return std::sqrt(std::max(0.0, squares / kResamples - mean * mean) * kResamples /
                   (kResamples - 1));
}

}  // namespace

at::Tensor Spread::Whiten(const at::Tensor& x, double ridge) const {
  return at::mm(x - mean, vectors) / (values + ridge).sqrt();
}

Spread MeasureSpread(std::span<const at::Tensor> sequences, bool centred) {
  Check(!sequences.empty(), "no sequences to measure");
  const int64_t d = sequences[0].size(1);
  Spread spread;
  at::Tensor sum = at::zeros({d}, at::kDouble);
  for (const at::Tensor& x : sequences) {
    spread.rows += x.size(0);
    sum += x.sum(0);
  }
  Check(spread.rows > 0, "no rows to measure");
  const auto n = static_cast<double>(spread.rows);
  spread.mean = centred ? sum / n : at::zeros({d}, at::kDouble);
  spread.covariance = at::zeros({d, d}, at::kDouble);
  for (const at::Tensor& x : sequences) {
    const at::Tensor y = x - spread.mean;
    spread.covariance.addmm_(y.t(), y);
  }
  spread.covariance /= n;
  const auto [values, vectors] = at::linalg_eigh(spread.covariance);
  const double largest = values[d - 1].item<double>();
  // Rows that are equal but for rounding span nothing.
  const double equal = kEqualRows * kEqualRows * (sum / n).square().sum().item<double>();
  const double least = largest > equal ? kRankTolerance * largest : largest;
  const int64_t dropped = values.le(least).sum().item<int64_t>();
  spread.values = values.slice(0, dropped).contiguous();
  spread.vectors = vectors.slice(1, dropped).contiguous();
  return spread;
}

double GaussianKurtosisError(int64_t rank, int64_t rows) {
  const auto r = static_cast<double>(rank);
  return std::sqrt(8 * r * (r + 2) / static_cast<double>(rows));
}

Mardia MeasureMardia(std::span<const at::Tensor> sequences, uint64_t seed) {
  const Spread spread = MeasureSpread(sequences);
  const int64_t r = spread.rank();
  const auto n = static_cast<double>(spread.rows), rank = static_cast<double>(r);
  const double trace = spread.values.sum().item<double>() / rank;

  std::array<double, kRidges.size()> fourth{};
  at::Tensor weighted = at::zeros({r, r}, at::kDouble);  // W = E D^2 w w^T, w whitened
  at::Tensor skewed = at::zeros({r}, at::kDouble);       // a = E D^2 w
  for (const at::Tensor& x : sequences) {
    for (size_t i = 0; i < kRidges.size(); ++i) {
      const at::Tensor w = spread.Whiten(x, kRidges[i] * trace);
      const at::Tensor square = (w * w).sum(1);
      fourth[i] += (square * square).sum().item<double>() / n;
      if (i > 0) continue;
      const at::Tensor scaled = w * square.unsqueeze(1);
      weighted.addmm_(scaled.t(), w, 1, 1 / n);
      skewed += scaled.sum(0) / n;
    }
  }
  // d b = E[D^4 - b] - 2 tr(W dSigma) - 4 a . dmu in whitened coordinates, summed over a sequence.
  const double b = fourth[0], trace_w = weighted.diagonal().sum().item<double>();
  std::vector<double> shares, rows;
  for (const at::Tensor& x : sequences) {
    const at::Tensor w = spread.Whiten(x), square = (w * w).sum(1);
    const at::Tensor influence = square * square - b -
                                 2 * ((at::mm(w, weighted) * w).sum(1) - trace_w) -
                                 4 * at::mv(w, skewed);
    shares.push_back(influence.sum().item<double>());
    rows.push_back(static_cast<double>(x.size(0)));
  }

  Mardia mardia;
  mardia.sequences = static_cast<int64_t>(sequences.size());
  mardia.rows = spread.rows;
  mardia.width = spread.mean.size(0);
  mardia.rank = r;
  const double unbiased = (n + 1) / (n - 1);
  mardia.kappa = b * unbiased;
  mardia.gaussian = rank * (rank + 2);
  mardia.gamma = mardia.kappa / mardia.gaussian - 1;
  mardia.gaussian_se = GaussianKurtosisError(r, spread.rows);
  mardia.bootstrap_se = BootstrapError(shares, rows, seed) * unbiased;
  mardia.saturated = mardia.kappa > rank * (n - 1) / 4;
  if (r == 0) {  // nothing varies, so that there is no distance to measure
    mardia.kappa = mardia.gamma = mardia.bootstrap_se = std::nan("");
  }
  mardia.too_few = mardia.sequences < 64 || spread.rows < 50 * r;
  for (size_t i = 0; i < kRidges.size(); ++i) {
    const at::Tensor h = spread.values / (spread.values + kRidges[i] * trace);
    const double h1 = h.sum().item<double>(), h2 = (h * h).sum().item<double>();
    mardia.ridge_factor[i] = fourth[i] * unbiased / (2 * h2 + h1 * h1);
  }
  return mardia;
}

}  // namespace hkt::analysis
