#pragma once

#include <gtest/gtest.h>
#include <torch/nn/module.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hkt/nn/hkt_attention.h"

// What the tests of the room share: random parameters, comparisons of tensors, and the layer
// written a second time with T x T scores and no operator of ours.

namespace hkt::nn {

using Pyramid = std::function<at::Tensor(const at::Tensor& x, int64_t level)>;

// Standard normal of a seed of its own, in double.
at::Tensor Normal(at::IntArrayRef shape, uint64_t seed);

// Gives every parameter random values: weights and biases N(0, 1/2), norms 1 + N(0, 1/16), level
// and gate logits N(0, 1), so that no level and no gate is idle. The module becomes `type`.
void Randomize(torch::nn::Module& module, uint64_t seed, at::ScalarType type = at::kDouble);

at::Tensor Parameter(const torch::nn::Module& module, const std::string& name);
void Fill(const torch::nn::Module& module, const std::string& name, const std::vector<double>& row);

// Both as doubles; the shapes must agree.
::testing::AssertionResult CompareTensors(const at::Tensor& got, const at::Tensor& want,
                                          double bound);
::testing::AssertionResult CompareTensorBits(const at::Tensor& got, const at::Tensor& want);
bool AllFinite(const at::Tensor& x);

// The layer of docs/model.md from the parameters of `layer`, straight from the formulas: dense
// scores, softmax over a mask, conv1d. X^(l) = pyramid(X^(l-1), l). Takes no lengths.
at::Tensor DenseLayer(const HktAttentionImpl& layer, const at::Tensor& x, const Pyramid& pyramid);

// The right pyramid of the layer, with conv1d: k - 1 zeros on the left; picked or undecimated where
// the layer's options say so.
Pyramid RightPyramid(const HktAttentionImpl& layer);

// DSConv of the parameters `prefix`.depthwise.*, .pointwise.* with `left` zeros before and as many
// behind as the last window needs.
at::Tensor SeparableConv1d(const torch::nn::Module& layer, const std::string& prefix,
                           const at::Tensor& x, int64_t left, int64_t stride, int64_t dilation = 1);

}  // namespace hkt::nn
