#include "hkt/analysis/spectrum.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/block_diag.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_eigvalsh.h>
#include <ATen/ops/linalg_qr.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/matmul.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hkt::analysis {
namespace {

constexpr double kZero = 1e-10;  // of the largest eigenvalue
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// sqrt of the number of tokens of each cell, [T_l, 1]: P_l^T P_l = diag(sizes).
at::Tensor RootSizes(const GramPart& part, int64_t T) {
  const int64_t Tl = part.rows.size(0);
  at::Tensor sizes = at::full({Tl, 1}, static_cast<double>(part.step), at::kDouble);
  if (Tl > 0) sizes[Tl - 1] = static_cast<double>(T - (Tl - 1) * part.step);
  return sizes.sqrt();
}

// The nonzero eigenvalues of Y B Y^T are those of R B R^T, Y = O R.
at::Tensor EigenvaluesOf(const at::Tensor& y, const at::Tensor& b) {
  const at::Tensor r = std::get<1>(at::linalg_qr(y, "r"));
  const at::Tensor small = at::matmul(at::matmul(r, b), r.t());
  return at::linalg_eigvalsh((small + small.t()) / 2);
}

}  // namespace

double Inertia::negative_share() const {
  return rank() > 0 ? static_cast<double>(negative) / static_cast<double>(rank()) : kNaN;
}

Inertia InertiaOf(const at::Tensor& eigenvalues, int64_t n) {
  Inertia result;
  const at::Tensor mu = eigenvalues.contiguous();
  const auto* data = mu.const_data_ptr<double>();
  double most = 0;
  for (int64_t i = 0; i < mu.numel(); ++i) most = std::max(most, std::abs(data[i]));
  double negative_energy = 0;
  for (int64_t i = 0; i < mu.numel(); ++i) {
    if (std::abs(data[i]) <= kZero * most) continue;
    (data[i] > 0 ? result.positive : result.negative) += 1;
    result.nonzero.push_back(data[i]);
    result.min = std::min(result.min, data[i]);
    result.max = std::max(result.max, data[i]);
    result.trace += data[i];
    result.energy += data[i] * data[i];
    if (data[i] < 0) negative_energy += data[i] * data[i];
  }
  result.zero = n - result.rank();
  std::sort(result.nonzero.begin(), result.nonzero.end());
  // 0 is an eigenvalue only where some are 0.
  if (result.rank() > 0 && result.zero == 0) {
    if (result.positive == 0) result.max = mu.max().item<double>();
    if (result.negative == 0) result.min = mu.min().item<double>();
  }
  result.negative_energy = result.energy > 0 ? negative_energy / result.energy : kNaN;
  return result;
}

Inertia ReducedForm::SymmetricInertia() const {
  return InertiaOf(at::linalg_eigvalsh(symmetric), basis.size(0));
}

int64_t ReducedForm::SkewRank() const {
  const at::Tensor values = at::linalg_svdvals(skew);
  const double most = values.numel() > 0 ? values.max().item<double>() : 0;
  return (values > kZero * most).sum().item<int64_t>();
}

ReducedForm Reduce(const at::Tensor& query, const at::Tensor& key, double scale) {
  const int64_t D = query.size(1);
  auto [basis, r] = at::linalg_qr(at::cat({query, key}, 1), "reduced");
  // M = basis R_1 R_2^T basis^T scale.
  const at::Tensor m = at::matmul(r.slice(1, 0, D), r.slice(1, D, 2 * D).t()) * scale;
  return {basis, (m + m.t()) / 2, (m - m.t()) / 2};
}

Inertia PartInertia(const GramPart& part, int64_t T) {
  const at::Tensor y = at::matmul(part.rows, part.form.basis) * RootSizes(part, T);
  return InertiaOf(EigenvaluesOf(y, part.form.symmetric * part.weight), T);
}

Inertia GramInertia(const std::vector<GramPart>& parts, int64_t T) {
  const at::Tensor tokens = at::arange(T, at::kLong);
  std::vector<at::Tensor> rows, forms;
  for (const GramPart& part : parts) {
    rows.push_back(
        at::matmul(part.rows, part.form.basis).index_select(0, tokens.floor_divide(part.step)));
    forms.push_back(part.form.symmetric * part.weight);
  }
  return InertiaOf(EigenvaluesOf(at::cat(rows, 1), at::block_diag(forms)), T);
}

RankBounds GramRankBounds(const std::vector<GramPart>& parts, int64_t T) {
  RankBounds bounds;
  for (size_t i = parts.size(); i-- > 0;) {
    const int64_t Tl = parts[i].rows.size(0);
    const int64_t rank = parts[i].weight > 0 ? parts[i].form.SymmetricInertia().rank() : 0;
    bounds.sum += std::min(Tl, rank);
    bounds.chain = std::min(Tl, bounds.chain + rank);
  }
  bounds.sum = std::min(bounds.sum, T);
  return bounds;
}

double GramDefectBound(const std::vector<GramPart>& parts, int64_t T) {
  double bound = 0;
  for (const GramPart& part : parts) {
    const double least = part.form.SymmetricInertia().min;
    const double norm = at::linalg_svdvals(part.rows * RootSizes(part, T)).max().item<double>();
    bound -= part.weight * std::max(0.0, -least) * norm * norm;
  }
  return bound;
}

}  // namespace hkt::analysis
