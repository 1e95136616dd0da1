// hkt::depthwise_conv and its backward pass: the kernel of hkt/kernels on the CPU, PyTorch's own
// operators on every other device and for float64.

#include <ATen/ops/addcmul.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/kernels/downsample.h"
#include "hkt/kernels/targets.h"
#include "hkt/ops/checks.h"
#include "hkt/ops/explain.h"
#include "hkt/ops/kernel_operands.h"
#include "hkt/ops/parallel.h"

namespace hkt::ops {
namespace {

// Work of an element in the unit of PoolFor: it costs a core what so many multiply-adds do, as
// memory bounds it, not arithmetic.
constexpr double kCostOfElement = 64;

// Weights are small beside x: a copy of those of 16 bits is cheap.
at::Tensor Exact(const at::Tensor& weight) { return weight.to(at::kFloat).contiguous(); }

kernels::DownsampleParams Params(const at::Tensor& x, const at::Tensor& exact_weight,
                                 int64_t stride) {
  return {.B = x.size(0),
          .T = x.size(1),
          .d = x.size(2),
          .k = exact_weight.size(2),
          .stride = stride,
          .type = *KernelType(x.scalar_type()),
          .x = ReadRows(x),
          .depthwise_weight = exact_weight.const_data_ptr<float>()};
}

kernels::Parallel Pool(const at::Tensor& x) {
  return PoolFor(kCostOfElement * static_cast<double>(x.numel()));
}

void ExplainFused(const char* op, const at::Tensor& x, const at::Tensor& weight, int64_t stride) {
  if (!Explaining()) return;
  Explain(op, Concat("fused ", kernels::ChosenTarget()),
          Concat(TypeName(x.scalar_type()), " on a CPU has a kernel"),
          DescribeDownsample(x, weight, stride));
}

void ExplainComposite(const char* op, const at::Tensor& x, const at::Tensor& weight,
                      int64_t stride) {
  if (!Explaining()) return;
  const std::string why =
      x.is_cpu() ? WhyNoKernel(x.scalar_type()) : Concat(x.device().str(), " has no kernel of hkt");
  Explain(op, "composite", why, DescribeDownsample(x, weight, stride));
}

// Tap a of every position: row tau of it is row tau s - (k-1) + a of x.
struct Taps {
  at::Tensor padded;  // [B, k - 1 + T, d]
  at::Tensor weight;  // [d, k]
  int64_t Tl, stride;

  Taps(const at::Tensor& x, const at::Tensor& depthwise_weight, int64_t step)
      : padded(at::constant_pad_nd(x.to(ExactType(x.scalar_type())),
                                   {0, 0, depthwise_weight.size(2) - 1, 0})),
        weight(depthwise_weight.squeeze(1).to(padded.scalar_type())),
        Tl(CeilDiv(x.size(1), step)),
        stride(step) {}
  at::Tensor Of(const at::Tensor& rows, int64_t a) const {
    return rows.slice(1, a, Tl == 0 ? a : a + (Tl - 1) * stride + 1, stride);
  }
  at::Tensor Weight(int64_t a) const { return weight.select(1, a); }
  int64_t k() const { return weight.size(1); }
};

at::Tensor Composite(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     int64_t stride) {
  CheckDepthwiseConv(x, weight, bias, stride);
  ExplainComposite("depthwise_conv", x, weight, stride);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Taps taps(x, weight, stride);
  at::Tensor y = bias.to(taps.padded.scalar_type()).expand({x.size(0), taps.Tl, x.size(2)});
  for (int64_t a = 0; a < taps.k(); ++a)
    y = at::addcmul(y, taps.Of(taps.padded, a), taps.Weight(a));
  return y.to(x.scalar_type()).contiguous();
}

std::vector<at::Tensor> BackwardComposite(const at::Tensor& d_out, const at::Tensor& x,
                                          const at::Tensor& weight, int64_t stride) {
  CheckDepthwiseConvBackward(d_out, x, weight, stride);
  ExplainComposite("depthwise_conv_backward", x, weight, stride);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Taps taps(x, weight, stride);
  const at::Tensor d_y = d_out.to(taps.padded.scalar_type());
  const at::Tensor d_padded = at::zeros(taps.padded.sizes(), taps.padded.options());
  std::vector<at::Tensor> d_weight;
  for (int64_t a = 0; a < taps.k(); ++a) {
    taps.Of(d_padded, a).addcmul_(d_y, taps.Weight(a));
    d_weight.push_back(d_y.mul(taps.Of(taps.padded, a)).sum(at::IntArrayRef{0, 1}));
  }
  return {d_padded.slice(1, taps.k() - 1).to(x.scalar_type()).contiguous(),
          at::stack(d_weight, 1).unsqueeze(1).to(weight.scalar_type()).contiguous(),
          d_y.sum(at::IntArrayRef{0, 1}).to(weight.scalar_type())};
}

at::Tensor Cpu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
               int64_t stride) {
  if (!KernelType(x.scalar_type())) return Composite(x, weight, bias, stride);
  CheckDepthwiseConv(x, weight, bias, stride);
  ExplainFused("depthwise_conv", x, weight, stride);
  const at::Tensor exact_weight = Exact(weight), exact_bias = Exact(bias);
  kernels::DownsampleParams params = Params(x, exact_weight, stride);
  params.depthwise_bias = exact_bias.const_data_ptr<float>();
  at::Tensor out = at::empty({x.size(0), CeilDiv(x.size(1), stride), x.size(2)}, x.options());
  kernels::DownsampleForward(params, WriteRows(out), Pool(x));
  return out;
}

std::vector<at::Tensor> BackwardCpu(const at::Tensor& d_out, const at::Tensor& x,
                                    const at::Tensor& weight, int64_t stride) {
  if (!KernelType(x.scalar_type())) return BackwardComposite(d_out, x, weight, stride);
  CheckDepthwiseConvBackward(d_out, x, weight, stride);
  ExplainFused("depthwise_conv_backward", x, weight, stride);
  const at::Tensor exact_weight = Exact(weight);
  kernels::DownsampleParams params = Params(x, exact_weight, stride);
  const at::Tensor no_bias = at::zeros({params.d}, exact_weight.options());
  params.depthwise_bias = no_bias.const_data_ptr<float>();
  const at::Tensor d_x = at::empty(x.sizes(), x.options()),
                   d_weight = at::empty(weight.sizes(), exact_weight.options()),
                   d_bias = at::empty({params.d}, exact_weight.options());
  kernels::DownsampleBackward(params, ReadRows(d_out),
                              {.x = WriteRows(d_x),
                               .depthwise_weight = d_weight.mutable_data_ptr<float>(),
                               .depthwise_bias = d_bias.mutable_data_ptr<float>()},
                              Pool(x));
  return {d_x, d_weight.to(weight.scalar_type()), d_bias.to(weight.scalar_type())};
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, CompositeExplicitAutograd, m) {
  m.impl("depthwise_conv", Composite);
  m.impl("depthwise_conv_backward", BackwardComposite);
}

TORCH_LIBRARY_IMPL(hkt, CPU, m) {
  m.impl("depthwise_conv", Cpu);
  m.impl("depthwise_conv_backward", BackwardCpu);
}

}  // namespace hkt::ops
