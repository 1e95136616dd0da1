#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

// The two causal convolutions of a layer. d model width, k kernel width, s stride. Both start as
// PyTorch's Conv1d and Linear do: uniform within 1/sqrt(fan in), weights and biases.

namespace hkt::nn {

// Parameters of a depthwise convolution: weight [d, 1, k], bias [d]. It is applied by the
// operators, together with what follows it.
class DepthwiseImpl : public torch::nn::Module {
 public:
  DepthwiseImpl(int64_t d_model, int64_t kernel_size);

  at::Tensor weight;
  at::Tensor bias;
};
TORCH_MODULE(Depthwise);

// C^(l), the convolution branch of a hybrid head: depthwise-separable and causal, stride 1.
//   x [B, T_l, d] -> [B, T_l, d]. Parameters depthwise.*, pointwise.*.
class SeparableConvImpl : public torch::nn::Module {
 public:
  SeparableConvImpl(int64_t d_model, int64_t kernel_size);
  // With a dilation position i reads i, i - dilation, …, i - (k-1) dilation.
  at::Tensor forward(const at::Tensor& x, int64_t dilation = 1);

 private:
  Depthwise depthwise_;
  torch::nn::Linear pointwise_;
};
TORCH_MODULE(SeparableConv);

// One step of the pyramid, X^(l) = GELU(LayerNorm(DSConv(X^(l-1)))), the convolution with stride s.
//   x [B, T, d] -> [B, ceil(T/s), d]; position tau depends on positions tau*s - (k-1) … tau*s only.
// Parameters depthwise.*, pointwise.*, norm.*.
// Throws hkt::UsageError for d_model < 1, kernel_size < 1 or stride < 2.
class DownsampleImpl : public torch::nn::Module {
 public:
  DownsampleImpl(int64_t d_model, int64_t kernel_size, int64_t stride);
  at::Tensor forward(const at::Tensor& x);
  // The same without the stride, [B, T, d] -> [B, T, d]: position i reads i, i - dilation, …,
  // i - (k-1) dilation.
  at::Tensor EveryPosition(const at::Tensor& x, int64_t dilation);

 private:
  at::Tensor Apply(const at::Tensor& x, int64_t stride);

  int64_t stride_;
  Depthwise depthwise_;
  torch::nn::Linear pointwise_;
  torch::nn::LayerNorm norm_;
};
TORCH_MODULE(Downsample);

}  // namespace hkt::nn
