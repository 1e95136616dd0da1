#include "hkt/nn/downsample.h"

#include <ATen/ops/empty.h>

#include <cmath>

#include "hkt/base/error.h"
#include "hkt/nn/undecimated.h"
#include "hkt/ops/ops.h"

namespace hkt::nn {

DepthwiseImpl::DepthwiseImpl(int64_t d_model, int64_t kernel_size) {
  CheckUsage(d_model >= 1, "d_model is ", d_model, ", must be at least 1");
  CheckUsage(kernel_size >= 1, "kernel_size is ", kernel_size, ", must be at least 1");
  // The fan-in of a depthwise convolution is its width.
  const double bound = 1 / std::sqrt(static_cast<double>(kernel_size));
  torch::NoGradGuard no_grad;
  weight =
      register_parameter("weight", at::empty({d_model, 1, kernel_size}).uniform_(-bound, bound));
  bias = register_parameter("bias", at::empty({d_model}).uniform_(-bound, bound));
}

SeparableConvImpl::SeparableConvImpl(int64_t d_model, int64_t kernel_size)
    : depthwise_(register_module("depthwise", Depthwise(d_model, kernel_size))),
      pointwise_(register_module("pointwise", torch::nn::Linear(d_model, d_model))) {}

at::Tensor SeparableConvImpl::forward(const at::Tensor& x, int64_t dilation) {
  return pointwise_->forward(InPhases(x, dilation, [&](const at::Tensor& phases) {
    return ops::depthwise_conv(phases, depthwise_->weight, depthwise_->bias);
  }));
}

DownsampleImpl::DownsampleImpl(int64_t d_model, int64_t kernel_size, int64_t stride)
    : stride_(stride),
      depthwise_(register_module("depthwise", Depthwise(d_model, kernel_size))),
      pointwise_(register_module("pointwise", torch::nn::Linear(d_model, d_model))),
      norm_(register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({d_model})))) {
  CheckUsage(stride >= 2, "stride is ", stride, ", must be at least 2");
}

at::Tensor DownsampleImpl::Apply(const at::Tensor& x, int64_t stride) {
  return ops::downsample(x, depthwise_->weight, depthwise_->bias, pointwise_->weight,
                         pointwise_->bias, norm_->weight, norm_->bias, stride,
                         norm_->options.eps());
}

at::Tensor DownsampleImpl::forward(const at::Tensor& x) { return Apply(x, stride_); }

at::Tensor DownsampleImpl::EveryPosition(const at::Tensor& x, int64_t dilation) {
  return InPhases(x, dilation, [this](const at::Tensor& phases) { return Apply(phases, 1); });
}

}  // namespace hkt::nn
