#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hkt/analysis/capture.h"
#include "hkt/analysis/layer.h"

// What the tests of the room share.

namespace hkt::analysis {

// Standard normal of a seed of its own, in double.
at::Tensor Normal(at::IntArrayRef shape, uint64_t seed);

// A layer with random weights of order 1 (projections N(0, 1/d), pyramid as in a trained model,
// logits N(0, 1)), every level and gate at work.
struct LayerShape {
  int64_t d = 6, H = 1, L = 3, stride = 2, kernel_size = 3;
  bool hybrid = true, bias = false, psd = false;
};
Layer RandomLayer(const LayerShape& shape, uint64_t seed);

// The configuration of a model with that layer.
ModelConfig LayerConfig(const LayerShape& shape);

// S^(l) between all rows of level l, all heads: x [T_l, d] -> [H, T_l, T_l], without weight and
// gain.
at::Tensor LevelScores(const Layer& layer, int64_t l, const at::Tensor& x);

// P_l [T, T_l]: 1 where tau_l(i) = tau.
at::Tensor CellMatrix(int64_t T, int64_t step);

double Trace(const at::Tensor& m);
at::Tensor Symmetric(const at::Tensor& m);  // (M + M^T)/2
at::Tensor Skew(const at::Tensor& m);       // (M - M^T)/2

// |mean(sample) - expected| is at most `errors` standard errors of the mean.
::testing::AssertionResult MeanWithin(const std::vector<double>& sample, double expected,
                                      double errors = 5);

// Largest |a - b|; NaN where either has one. The shapes must agree.
double Distance(const at::Tensor& a, const at::Tensor& b);

}  // namespace hkt::analysis
