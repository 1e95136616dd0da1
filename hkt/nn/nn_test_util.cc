#include "hkt/nn/nn_test_util.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/conv1d.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/testing/compare.h"

namespace hkt::nn {
namespace {

std::vector<double> Doubles(const at::Tensor& x) {
  const at::Tensor flat = x.detach().to(at::kDouble).contiguous();
  const double* data = flat.const_data_ptr<double>();
  return {data, data + flat.numel()};
}

::testing::AssertionResult Result(const testing::Comparison& comparison) {
  return comparison ? ::testing::AssertionSuccess()
                    : ::testing::AssertionFailure() << comparison.message;
}

// x [B, H, T, D]; the pair (2i, 2i+1) of row tau turns by tau * step * 10000^(-2i/D).
at::Tensor Rotated(const at::Tensor& x, double step) {
  const int64_t T = x.size(2), D = x.size(3);
  const at::Tensor i = at::arange(0, D, 2, x.options()), tau = at::arange(T, x.options());
  const at::Tensor angle =
      (tau * step).unsqueeze(1) * at::pow(10000.0, -i / static_cast<double>(D));
  const at::Tensor even = x.slice(3, 0, D, 2), odd = x.slice(3, 1, D, 2);
  return at::stack({even * at::cos(angle) - odd * at::sin(angle),
                    even * at::sin(angle) + odd * at::cos(angle)},
                   4)
      .flatten(3);
}

at::Tensor Project(const HktAttentionImpl& layer, const std::string& name, const at::Tensor& x,
                   int64_t heads) {
  const std::optional<at::Tensor> bias =
      layer.options().bias ? std::optional(Parameter(layer, name + ".bias")) : std::nullopt;
  const at::Tensor y = at::linear(x, Parameter(layer, name + ".weight"), bias);
  return y.unflatten(2, {heads, y.size(2) / heads}).transpose(1, 2);
}

int64_t Power(int64_t base, int64_t exponent) {
  return exponent == 0 ? 1 : base * Power(base, exponent - 1);
}

// The shapes here are far below what a second thread is worth, and ctest runs programs side by
// side.
class OneThread : public ::testing::Environment {
  void SetUp() override { at::set_num_threads(1); }
};
[[maybe_unused]] const auto* const kOneThread = ::testing::AddGlobalTestEnvironment(new OneThread);

}  // namespace

at::Tensor Normal(at::IntArrayRef shape, uint64_t seed) {
  Random random({seed, 77});
  at::Tensor x = at::empty(shape, at::kDouble);
  double* data = x.mutable_data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) data[i] = random.Normal();
  return x;
}

void Randomize(torch::nn::Module& module, uint64_t seed, at::ScalarType type) {
  module.to(type);
  torch::NoGradGuard no_grad;
  for (const auto& item : module.named_parameters()) {
    const std::string& name = item.key();
    at::Tensor value = Normal(item.value().sizes(), ++seed);
    if (name.find("logits") == std::string::npos) {
      const bool scale = name.find("norm.weight") != std::string::npos;
      value = scale ? value / 16 + 1 : value / 2;
    }
    item.value().copy_(value);
  }
}

at::Tensor Parameter(const torch::nn::Module& module, const std::string& name) {
  const auto parameters = module.named_parameters();
  const at::Tensor* found = parameters.find(name);
  Check(found != nullptr, "no parameter ", name);
  return *found;
}

void Fill(const torch::nn::Module& module, const std::string& name,
          const std::vector<double>& row) {
  torch::NoGradGuard no_grad;
  const at::Tensor parameter = Parameter(module, name);
  parameter.copy_(at::tensor(row, parameter.options().requires_grad(false)));
}

::testing::AssertionResult CompareTensors(const at::Tensor& got, const at::Tensor& want,
                                          double bound) {
  if (!got.sizes().equals(want.sizes())) {
    return ::testing::AssertionFailure()
           << "shape " << got.sizes() << ", expected " << want.sizes();
  }
  return Result(testing::Compare(Doubles(got), Doubles(want), bound));
}

::testing::AssertionResult CompareTensorBits(const at::Tensor& got, const at::Tensor& want) {
  if (!got.sizes().equals(want.sizes())) {
    return ::testing::AssertionFailure()
           << "shape " << got.sizes() << ", expected " << want.sizes();
  }
  return Result(testing::CompareBits(Doubles(got), Doubles(want)));
}

bool AllFinite(const at::Tensor& x) { return at::isfinite(x).all().item<bool>(); }

at::Tensor SeparableConv1d(const torch::nn::Module& layer, const std::string& prefix,
                           const at::Tensor& x, int64_t left, int64_t stride, int64_t dilation) {
  const at::Tensor weight = Parameter(layer, prefix + ".depthwise.weight");
  const int64_t d = weight.size(0), k = weight.size(2);
  const int64_t T = x.size(1), Tl = (T + stride - 1) / stride;
  const int64_t right = std::max<int64_t>(0, (Tl - 1) * stride + (k - 1) * dilation + 1 - left - T);
  const at::Tensor padded = at::constant_pad_nd(x.transpose(1, 2), {left, right});
  const at::Tensor y =
      at::conv1d(padded, weight, Parameter(layer, prefix + ".depthwise.bias"),
                 at::IntArrayRef{stride}, at::IntArrayRef{0}, at::IntArrayRef{dilation}, d);
  return at::linear(y.transpose(1, 2).slice(1, 0, Tl),
                    Parameter(layer, prefix + ".pointwise.weight"),
                    Parameter(layer, prefix + ".pointwise.bias"));
}

Pyramid RightPyramid(const HktAttentionImpl& layer) {
  return [&layer](const at::Tensor& x, int64_t level) {
    const std::string prefix = Concat("downsample.", level);
    const auto& o = layer.options();
    if (o.downsampling == Downsampling::kPick)
      return x.index_select(1, at::arange(0, x.size(1), o.stride, at::kLong));
    const int64_t dilation = o.undecimated ? Power(o.stride, level - 1) : 1;
    const at::Tensor y = SeparableConv1d(layer, prefix, x, (o.kernel_size - 1) * dilation,
                                         o.undecimated ? 1 : o.stride, dilation);
    return at::gelu(at::layer_norm(y, {o.d_model}, Parameter(layer, prefix + ".norm.weight"),
                                   Parameter(layer, prefix + ".norm.bias"), 1e-5));
  };
}

at::Tensor DenseLayer(const HktAttentionImpl& layer, const at::Tensor& x, const Pyramid& pyramid) {
  const auto& o = layer.options();
  const int64_t T = x.size(1), D = o.d_model / o.heads, G = o.heads / o.kv_heads;
  const at::Tensor tokens = at::arange(T, at::kLong);
  const auto column = [](const at::Tensor& weights, int64_t l) {  // [H, L] -> [H, 1, 1]
    return weights.select(1, l).unsqueeze(1).unsqueeze(2);
  };
  const at::Tensor lambda =
      o.fusion == Fusion::kUniform
          ? at::full({o.heads, o.levels}, 1.0 / static_cast<double>(o.levels), x.options())
          : at::softmax(Parameter(layer, "level_logits"), 1);
  const at::Tensor beta =
      o.hybrid ? at::sigmoid(Parameter(layer, "gate_logits")) : at::zeros_like(lambda) + 1;
  const at::Tensor bbar = (lambda * beta).sum(1, /*keepdim=*/true);
  const at::Tensor weights = lambda * beta / bbar;

  at::Tensor scores, convolution, level = x;
  int64_t step = 1;
  for (int64_t l = 0; l < o.levels; ++l, step *= o.undecimated ? 1 : o.stride) {
    if (l > 0) level = pyramid(level, l);
    at::Tensor q = Project(layer, Concat("query.", l), level, o.heads);
    at::Tensor k = Project(layer, Concat(o.psd ? "query." : "key.", l), level, o.kv_heads);
    if (o.rotary) {
      q = Rotated(q, static_cast<double>(step));
      k = Rotated(k, static_cast<double>(step));
    }
    k = k.repeat_interleave(G, 1);
    const at::Tensor coarse = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(D));
    const at::Tensor cell = tokens.floor_divide(step);
    const at::Tensor up = coarse.index_select(2, cell).index_select(3, cell);
    const at::Tensor term = column(weights, l) * up * o.score_gain;
    scores = l == 0 ? term : scores + term;
    if (o.hybrid) {
      const int64_t dilation = o.undecimated ? Power(o.stride, l) : 1;
      const at::Tensor rows = SeparableConv1d(layer, Concat("conv.", l), level,
                                              (o.kernel_size - 1) * dilation, 1, dilation);
      const at::Tensor branch =
          rows.unflatten(2, {o.heads, D}).transpose(1, 2).index_select(2, cell);
      const at::Tensor share = column(lambda * (1 - beta), l) * branch;
      convolution = l == 0 ? share : convolution + share;
    }
  }
  if (o.causal) {
    scores = scores.masked_fill(tokens.unsqueeze(0) > tokens.unsqueeze(1), -INFINITY);
  }
  const at::Tensor value = Project(layer, "value", x, o.kv_heads).repeat_interleave(G, 1);
  at::Tensor out = at::matmul(at::softmax(scores, 3), value);
  if (o.hybrid) out = bbar.unsqueeze(2) * out + convolution;
  return at::linear(out.transpose(1, 2).flatten(2), Parameter(layer, "output.weight"),
                    Parameter(layer, "output.bias"));
}

}  // namespace hkt::nn
