#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// What a level loses because it is kept at the first token of each cell only (docs/theory.md, 3.3).
// z [T, d] is the undecimated level, c(i) = i - i mod s^l the first token of i's cell.

namespace hkt::analysis {

// z_{c(i)} for every i: z [T, d] -> [T, d].
at::Tensor FirstOfCell(const at::Tensor& z, int64_t step);

// Second moments over pairs' left or right tokens.
struct CellMoments {
  at::Tensor full;   // E z_i z_i^T
  at::Tensor cell;   // E z_c(i) z_c(i)^T; equal to full when z is stationary
  at::Tensor cross;  // R = E z_i z_c(i)^T
};

// Sums over rows of a sequence, for CellMoments when divided by the rows; `mean` is taken off.
CellMoments SumCellMoments(const at::Tensor& z, int64_t step, const at::Tensor& mean);

// phibar_l = tr R / tr Sigma: mean of the autocorrelation over lags 0 … s^l - 1 of a stationary
// field.
double MeanAutocorrelation(const CellMoments& moments);

// E(z_i^T M z_j - z_c(i)^T M z_c(j))^2 and E(z_i^T M z_j)^2 of independent tokens i, j. With both
// sides alike and stationary the first is 2 [tr(M Sigma M^T Sigma) - tr(M R M^T R^T)].
double IndependentLoss(const at::Tensor& M, const CellMoments& left, const CellMoments& right);

// Loss over E(z_i^T M z_j)^2 if R = phibar Sigma: 2 (1 - phibar^2), and 1 - phibar^4 after the best
// rescaling of the decimated score.
double RelativeLoss(double phibar);
double RescaledLoss(double phibar);

// The first sample of a cell in place of its mean, summed over tokens of whole or cut cells:
// sum |z - z_first|^2 = sum |z - zbar|^2 + sum |zbar - z_first|^2, exactly.
struct FirstSampleCost {
  double first = 0, mean = 0, offset = 0;
};
FirstSampleCost MeasureFirstSample(const at::Tensor& z, int64_t step);

}  // namespace hkt::analysis
