#include "hkt/analysis/correction.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_eigh.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/mm.h>

#include <algorithm>

namespace hkt::analysis {
namespace {

at::Tensor Symmetric(const at::Tensor& M) { return (M + M.t()) / 2; }

double Trace(const at::Tensor& a) { return a.diagonal().sum().item<double>(); }

// tr(A B) without the product.
double TraceOf(const at::Tensor& a, const at::Tensor& b) {
  return (a * b.t()).sum().item<double>();
}

// R with R R^T = Sigma: any such root has the same singular values of R_x^T M R_y.
at::Tensor Root(const at::Tensor& sigma) {
  const auto [values, vectors] = at::linalg_eigh(sigma);
  return vectors * values.clamp_min(0).sqrt();
}

at::Tensor SingularValues(const at::Tensor& M, const at::Tensor& sigma_x,
                          const at::Tensor& sigma_y) {
  return at::linalg_svdvals(at::mm(at::mm(Root(sigma_x).t(), M), Root(sigma_y)));
}

}  // namespace

double GaussianSecondMoment(const at::Tensor& M, const at::Tensor& covariance) {
  const at::Tensor a = at::mm(Symmetric(M), covariance);
  const double trace = Trace(a);
  return 2 * TraceOf(a, a) + trace * trace;
}

double IndependentSecondMoment(const at::Tensor& M, const at::Tensor& sigma_x,
                               const at::Tensor& sigma_y) {
  return TraceOf(at::mm(at::mm(M, sigma_y), M.t()), sigma_x);
}

double OperatorNorm(const at::Tensor& M, const at::Tensor& sigma_x, const at::Tensor& sigma_y) {
  return SingularValues(M, sigma_x, sigma_y).max().item<double>();
}

double EffectiveRank(const at::Tensor& M, const at::Tensor& sigma_x, const at::Tensor& sigma_y) {
  const at::Tensor squares = SingularValues(M, sigma_x, sigma_y).square();
  const double sum = squares.sum().item<double>();
  return sum * sum / squares.square().sum().item<double>();
}

double EllipticalScoreKurtosis(double gamma_x, double gamma_y, double effective_rank) {
  return 3 * (1 + gamma_x) * (1 + gamma_y) * (1 + 2 / effective_rank);
}

double RandomWeightsScoreKurtosis(int64_t head_width) {
  return 3 + 6 / static_cast<double>(head_width);
}

double SameCellShare(int64_t T, int64_t step, bool causal) {
  double same = 0;
  for (int64_t begin = 0; begin < T; begin += step) {
    const auto size = static_cast<double>(std::min(step, T - begin));
    same += causal ? size * (size + 1) / 2 : size * size;
  }
  const auto tokens = static_cast<double>(T);
  return same / (causal ? tokens * (tokens + 1) / 2 : tokens * tokens);
}

double LevelSecondMoment(double same_cell, double gamma, double gaussian, double independent) {
  return same_cell * (1 + gamma) * gaussian + (1 - same_cell) * independent;
}

}  // namespace hkt::analysis
