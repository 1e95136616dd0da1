#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "hkt/analysis/moments.h"
#include "hkt/analysis/subject.h"

// M = M_s + M_a: what in the scores is reciprocal and what directional (theory.md 2).

namespace hkt::analysis {

// Antisymmetric share of energy ||M_a||^2 / ||M||^2 of M = W_Q W_K^T, from D x D products
// (theory.md 2.4), with what independent Gaussian W_Q, W_K of the same singular values give.
struct Antisymmetry {
  double alpha = 0;
  double expected = 0;   // (d - 1) / (2 d)
  double deviation = 0;  // standard deviation of alpha given the singular values
  double z = 0;          // (alpha - expected) / deviation
};
// query, key [d, D]; NaN for the zero matrix, and deviation and z for d = 1.
Antisymmetry AntisymmetryOf(const at::Tensor& query, const at::Tensor& key);

// The same share of Sigma^{1/2} M Sigma^{1/2}: for independent centred tokens the share of the
// scores' variance that is directional.
double DataAntisymmetry(const at::Tensor& query, const at::Tensor& key, const at::Tensor& sigma);

// Slope of y by least squares on x = 0, 1, 2, …; NaN for fewer than two values.
double Slope(const std::vector<double>& y);

// Per layer, head and level; 4096 random pairs a sequence. `moments` is read at the end.
//   direction.levels, .fused, .trend: docs/analyze.md.
std::unique_ptr<Subject> MakeDirectionSubject(const std::vector<Layer>& layers,
                                              const LevelMoments& moments);

}  // namespace hkt::analysis
