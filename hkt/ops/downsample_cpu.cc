// hkt::downsample and hkt::downsample_backward on the CPU: the fused kernels of hkt/kernels for
// float32, bfloat16 and float16; the composite for float64.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/kernels/downsample.h"
#include "hkt/kernels/targets.h"
#include "hkt/ops/checks.h"
#include "hkt/ops/downsample_composite.h"
#include "hkt/ops/explain.h"
#include "hkt/ops/kernel_operands.h"
#include "hkt/ops/parallel.h"

namespace hkt::ops {
namespace {

// A weight as kernels take it. Weights are small beside x: a copy of those of 16 bits is cheap.
at::Tensor Exact(const at::Tensor& weight) { return weight.to(at::kFloat).contiguous(); }

// Parameters and what they point to.
class Call {
 public:
  Call(const at::Tensor& x, const at::Tensor& depthwise_weight, const at::Tensor& depthwise_bias,
       const at::Tensor& pointwise_weight, const at::Tensor& pointwise_bias,
       const at::Tensor& norm_weight, const at::Tensor& norm_bias, int64_t stride, double eps)
      : weights_{Exact(depthwise_weight), Exact(depthwise_bias), Exact(pointwise_weight),
                 Exact(pointwise_bias),   Exact(norm_weight),    Exact(norm_bias)} {
    const auto weight = [this](size_t i) { return weights_[i].const_data_ptr<float>(); };
    params_ = {.B = x.size(0),
               .T = x.size(1),
               .d = x.size(2),
               .k = depthwise_weight.size(2),
               .stride = stride,
               .eps = static_cast<float>(eps),
               .type = *KernelType(x.scalar_type()),
               .x = ReadRows(x),
               .depthwise_weight = weight(0),
               .depthwise_bias = weight(1),
               .pointwise_weight = weight(2),
               .pointwise_bias = weight(3),
               .norm_weight = weight(4),
               .norm_bias = weight(5)};
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const kernels::DownsampleParams& params() const { return params_; }
  int64_t Tl() const { return CeilDiv(params_.T, params_.stride); }
  double Flops() const {
    return 2 * static_cast<double>(params_.B * Tl()) * static_cast<double>(params_.d) *
           static_cast<double>(params_.d + params_.k);
  }

 private:
  at::Tensor weights_[6];
  kernels::DownsampleParams params_;
};

void ExplainFused(const char* op, const at::Tensor& x, const at::Tensor& weight, int64_t stride) {
  if (!Explaining()) return;
  Explain(op, Concat("fused ", kernels::ChosenTarget()),
          Concat(TypeName(x.scalar_type()), " on a CPU has a kernel"),
          DescribeDownsample(x, weight, stride));
}

at::Tensor DownsampleCpu(const at::Tensor& x, const at::Tensor& depthwise_weight,
                         const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                         const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                         const at::Tensor& norm_bias, int64_t stride, double eps) {
  CheckDownsample(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                  norm_weight, norm_bias, stride);
  if (!KernelType(x.scalar_type())) {
    return DownsampleComposite(x, depthwise_weight, depthwise_bias, pointwise_weight,
                               pointwise_bias, norm_weight, norm_bias, stride, eps);
  }
  ExplainFused("downsample", x, depthwise_weight, stride);
  const Call call(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                  norm_weight, norm_bias, stride, eps);
  at::Tensor out = at::empty({x.size(0), call.Tl(), x.size(2)}, x.options());
  kernels::DownsampleForward(call.params(), WriteRows(out), PoolFor(call.Flops()));
  return out;
}

std::vector<at::Tensor> DownsampleBackwardCpu(
    const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& depthwise_weight,
    const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
    const at::Tensor& pointwise_bias, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
    int64_t stride, double eps) {
  CheckDownsampleBackward(d_out, x, depthwise_weight, depthwise_bias, pointwise_weight,
                          pointwise_bias, norm_weight, norm_bias, stride);
  if (!KernelType(x.scalar_type())) {
    return DownsampleBackwardComposite(d_out, x, depthwise_weight, depthwise_bias, pointwise_weight,
                                       pointwise_bias, norm_weight, norm_bias, stride, eps);
  }
  ExplainFused("downsample_backward", x, depthwise_weight, stride);
  const Call call(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                  norm_weight, norm_bias, stride, eps);
  const at::Tensor* weights[] = {&depthwise_weight, &depthwise_bias, &pointwise_weight,
                                 &pointwise_bias,   &norm_weight,    &norm_bias};
  std::vector<at::Tensor> gradients = {at::empty(x.sizes(), x.options())};
  for (const at::Tensor* weight : weights)
    gradients.push_back(at::empty(weight->sizes(), weight->options().dtype(at::kFloat)));
  const auto data = [&](size_t i) { return gradients[i].mutable_data_ptr<float>(); };
  kernels::DownsampleBackward(call.params(), ReadRows(d_out),
                              {.x = WriteRows(gradients[0]),
                               .depthwise_weight = data(1),
                               .depthwise_bias = data(2),
                               .pointwise_weight = data(3),
                               .pointwise_bias = data(4),
                               .norm_weight = data(5),
                               .norm_bias = data(6)},
                              PoolFor(3 * call.Flops()));
  for (size_t i = 0; i < 6; ++i) gradients[i + 1] = gradients[i + 1].to(weights[i]->scalar_type());
  return gradients;
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, CPU, m) {
  m.impl("downsample", DownsampleCpu);
  m.impl("downsample_backward", DownsampleBackwardCpu);
}

}  // namespace hkt::ops
