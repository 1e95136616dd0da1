#include "hkt/analysis/quantisation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "hkt/analysis/correction.h"

namespace hkt::analysis {
namespace {

at::Tensor Cells(int64_t T, int64_t step) { return at::arange(T, at::kLong).floor_divide(step); }

}  // namespace

at::Tensor FirstOfCell(const at::Tensor& z, int64_t step) {
  return z.index_select(0, Cells(z.size(0), step) * step);
}

CellMoments SumCellMoments(const at::Tensor& z, int64_t step, const at::Tensor& mean) {
  const at::Tensor full = z - mean, cell = FirstOfCell(full, step);
  return {at::mm(full.t(), full), at::mm(cell.t(), cell), at::mm(full.t(), cell)};
}

double MeanAutocorrelation(const CellMoments& moments) {
  return moments.cross.diagonal().sum().item<double>() /
         moments.full.diagonal().sum().item<double>();
}

double IndependentLoss(const at::Tensor& M, const CellMoments& left, const CellMoments& right) {
  const double cross = (at::mm(at::mm(M, right.cross), M.t()) * left.cross).sum().item<double>();
  return IndependentSecondMoment(M, left.full, right.full) +
         IndependentSecondMoment(M, left.cell, right.cell) - 2 * cross;
}

double RelativeLoss(double phibar) { return 2 * (1 - phibar * phibar); }

double RescaledLoss(double phibar) { return 1 - phibar * phibar * phibar * phibar; }

FirstSampleCost MeasureFirstSample(const at::Tensor& z, int64_t step) {
  const at::Tensor cells = Cells(z.size(0), step);
  const int64_t count = (z.size(0) + step - 1) / step;
  const at::Tensor sums = at::zeros({count, z.size(1)}, at::kDouble).index_add_(0, cells, z);
  const at::Tensor sizes =
      at::zeros({count}, at::kDouble).index_add_(0, cells, at::ones({z.size(0)}, at::kDouble));
  const at::Tensor mean = (sums / sizes.unsqueeze(1)).index_select(0, cells);
  const at::Tensor first = FirstOfCell(z, step);
  const auto squares = [](const at::Tensor& x) { return (x * x).sum().item<double>(); };
  return {squares(z - first), squares(z - mean), squares(mean - first)};
}

}  // namespace hkt::analysis
