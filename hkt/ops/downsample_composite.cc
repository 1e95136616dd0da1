#include "hkt/ops/downsample_composite.h"

#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/native_layer_norm.h>
#include <ATen/ops/native_layer_norm_backward.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include "hkt/base/error.h"
#include "hkt/ops/checks.h"
#include "hkt/ops/explain.h"

namespace hkt::ops {
namespace {

// Everything of the forward pass that the backward pass needs again, rows of all sequences one
// below the other.
struct Forward {
  at::Tensor y;              // [B * T_l, d] after the depthwise convolution
  at::Tensor z;              // after the pointwise map
  at::Tensor normed;         // after the norm, its weight and its bias
  at::Tensor mean, inverse;  // of the norm's rows
  at::Tensor weight;         // pointwise, in the type of the product
  at::Tensor norm_weight, norm_bias;
};

struct Depthwise {
  at::Tensor padded;  // [B, k - 1 + T, d]
  at::Tensor weight;  // [d, k]
  int64_t Tl, stride;

  Depthwise(const at::Tensor& x, const at::Tensor& depthwise_weight, int64_t step,
            at::ScalarType exact)
      : padded(at::constant_pad_nd(x.to(exact), {0, 0, depthwise_weight.size(2) - 1, 0})),
        weight(depthwise_weight.squeeze(1).to(exact)),
        Tl((x.size(1) + step - 1) / step),
        stride(step) {}

  // What tap a of every position meets, [B, T_l, d].
  at::Tensor Tap(int64_t a) const { return TapOf(padded, a); }
  at::Tensor TapOf(const at::Tensor& rows, int64_t a) const {
    return rows.slice(1, a, Tl == 0 ? a : a + (Tl - 1) * stride + 1, stride);
  }
};

Forward Recompute(const Depthwise& conv, const at::Tensor& depthwise_bias,
                  const at::Tensor& pointwise_weight, const at::Tensor& pointwise_bias,
                  const at::Tensor& norm_weight, const at::Tensor& norm_bias, double eps,
                  at::ScalarType product) {
  const at::ScalarType exact = conv.padded.scalar_type();
  const int64_t d = conv.padded.size(2);
  at::Tensor y = depthwise_bias.to(exact).expand({conv.padded.size(0), conv.Tl, d});
  for (int64_t a = 0; a < conv.weight.size(1); ++a)
    y = y.addcmul(conv.Tap(a), conv.weight.select(1, a));
  Forward f;
  f.y = y.reshape({-1, d});
  f.weight = pointwise_weight.to(product);
  f.z = at::matmul(f.y.to(product), f.weight.t()).to(exact).add_(pointwise_bias.to(exact));
  f.norm_weight = norm_weight.to(exact);
  f.norm_bias = norm_bias.to(exact);
  std::tie(f.normed, f.mean, f.inverse) =
      at::native_layer_norm(f.z, {d}, f.norm_weight, f.norm_bias, eps);
  return f;
}

void ExplainComposite(const char* op, const at::Tensor& x, const at::Tensor& weight,
                      int64_t stride) {
  if (!Explaining()) return;
  const std::string why =
      x.is_cpu() ? WhyNoKernel(x.scalar_type()) : Concat(x.device().str(), " has no kernel of hkt");
  Explain(op, "composite", why, DescribeDownsample(x, weight, stride));
}

}  // namespace

at::Tensor DownsampleComposite(const at::Tensor& x, const at::Tensor& depthwise_weight,
                               const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                               const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                               const at::Tensor& norm_bias, int64_t stride, double eps) {
  CheckDownsample(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                  norm_weight, norm_bias, stride);
  ExplainComposite("downsample", x, depthwise_weight, stride);
  // The caller chose the types; the parts are not to be cast again.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Depthwise conv(x, depthwise_weight, stride, ExactType(x.scalar_type()));
  const Forward f = Recompute(conv, depthwise_bias, pointwise_weight, pointwise_bias, norm_weight,
                              norm_bias, eps, x.scalar_type());
  return at::gelu(f.normed).to(x.scalar_type()).reshape({x.size(0), conv.Tl, x.size(2)});
}

std::vector<at::Tensor> DownsampleBackwardComposite(
    const at::Tensor& d_out, const at::Tensor& x, const at::Tensor& depthwise_weight,
    const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
    const at::Tensor& pointwise_bias, const at::Tensor& norm_weight, const at::Tensor& norm_bias,
    int64_t stride, double eps) {
  CheckDownsampleBackward(d_out, x, depthwise_weight, depthwise_bias, pointwise_weight,
                          pointwise_bias, norm_weight, norm_bias, stride);
  ExplainComposite("downsample_backward", x, depthwise_weight, stride);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType exact = ExactType(x.scalar_type()), product = x.scalar_type();
  const int64_t d = x.size(2), k = depthwise_weight.size(2);
  const Depthwise conv(x, depthwise_weight, stride, exact);
  const Forward f = Recompute(conv, depthwise_bias, pointwise_weight, pointwise_bias, norm_weight,
                              norm_bias, eps, product);
  const at::Tensor d_normed =
      at::gelu_backward(d_out.reshape({-1, d}).contiguous().to(exact), f.normed);
  auto [d_z, d_norm_weight, d_norm_bias] = at::native_layer_norm_backward(
      d_normed, f.z, {d}, f.mean, f.inverse, f.norm_weight, f.norm_bias, {true, true, true});
  const at::Tensor d_z_product = d_z.to(product);
  const at::Tensor d_pointwise = at::matmul(d_z_product.t(), f.y.to(product));
  const at::Tensor d_y =
      at::matmul(d_z_product, f.weight).to(exact).reshape({x.size(0), conv.Tl, d});
  at::Tensor d_padded = at::zeros(conv.padded.sizes(), conv.padded.options());
  std::vector<at::Tensor> d_taps;
  for (int64_t a = 0; a < k; ++a) {
    conv.TapOf(d_padded, a).addcmul_(d_y, conv.weight.select(1, a));
    d_taps.push_back(d_y.mul(conv.Tap(a)).sum(at::IntArrayRef{0, 1}));
  }
  const auto like = [](const at::Tensor& gradient, const at::Tensor& weight) {
    return gradient.to(weight.scalar_type()).contiguous();
  };
  return {d_padded.slice(1, k - 1).to(x.scalar_type()).contiguous(),
          like(at::stack(d_taps, 1).unsqueeze(1), depthwise_weight),
          like(d_y.sum(at::IntArrayRef{0, 1}), depthwise_bias),
          like(d_pointwise, pointwise_weight),
          like(d_z.sum(0), pointwise_bias),
          like(d_norm_weight, norm_weight),
          like(d_norm_bias, norm_bias)};
}

TORCH_LIBRARY_IMPL(hkt, CompositeExplicitAutograd, m) {
  m.impl("downsample", DownsampleComposite);
  m.impl("downsample_backward", DownsampleBackwardComposite);
}

}  // namespace hkt::ops
