#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// Second moments of a bilinear score x^T M y, and what kurtosis does to them (docs/theory.md, 3.5).
// All tensors in double: M [d, d], covariances [d, d], mean [d]. M_s is the symmetric part of M.

namespace hkt::analysis {

// 2 tr((M_s Sigma)^2) + tr(M_s Sigma)^2: E(x^T M x)^2 of centred Gaussian x. Of a centred
// elliptical law it is this times 1 + gamma.
double GaussianSecondMoment(const at::Tensor& M, const at::Tensor& covariance);

// tr(M Sigma_y M^T Sigma_x): E(x^T M y)^2 of independent tokens of any laws; kurtosis has no part.
// Sigma are second moments about 0.
double IndependentSecondMoment(const at::Tensor& M, const at::Tensor& sigma_x,
                               const at::Tensor& sigma_y);

// |Sigma_x^1/2 M Sigma_y^1/2|, largest singular value. With kappa = E(x^T Sigma^-1 x)^2 of both,
// E(x^T M y)^2 <= kappa times its square, whatever the laws and the dependence; for y = x give M_s.
double OperatorNorm(const at::Tensor& M, const at::Tensor& sigma_x, const at::Tensor& sigma_y);

// r_eff = tr(A^T A)^2 / tr((A^T A)^2), A = Sigma_x^1/2 M Sigma_y^1/2: between 1 and rank M.
double EffectiveRank(const at::Tensor& M, const at::Tensor& sigma_x, const at::Tensor& sigma_y);

// 3 (1 + gamma_x)(1 + gamma_y)(1 + 2/r_eff): kurtosis of the score of independent, centred,
// elliptical tokens.
double EllipticalScoreKurtosis(double gamma_x, double gamma_y, double effective_rank);

// 3 + 6/d_h: kurtosis over Gaussian W_Q, W_K of the score of any fixed tokens.
double RandomWeightsScoreKurtosis(int64_t head_width);

// Share of the pairs j <= i (all pairs, if not causal) of T tokens that lie in one cell of `step` =
// s^l tokens; (s^l + 1)/(T + 1) where s^l divides T.
double SameCellShare(int64_t T, int64_t step, bool causal);

// pi (1 + gamma) Gaussian + (1 - pi) independent: E(S^(l))^2 over pairs of which the share pi lies
// in one cell, for independent elliptical rows of level l.
double LevelSecondMoment(double same_cell, double gamma, double gaussian, double independent);

}  // namespace hkt::analysis
