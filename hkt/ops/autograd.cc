// Derivatives of the operators. The only file that includes custom_function.h, 12 s of compiling.
//
// A TensorList argument of forward() is walked for edges of the graph; a std::vector<at::Tensor>
// would count as no tensor at all, and gradients would be silently missing.

#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "hkt/ops/ops.h"
#include "hkt/ops/unused.h"

namespace hkt::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using OptionalTensor = std::optional<at::Tensor>;

class AttentionFn : public torch::autograd::Function<AttentionFn> {
 public:
  static constexpr bool is_traceable = true;  // compiled autograd may trace through backward

  static at::Tensor forward(AutogradContext* ctx, at::TensorList queries, at::TensorList keys,
                            const at::Tensor& value, int64_t stride, std::optional<double> scale,
                            bool causal, const OptionalTensor& lengths) {
    const at::AutoDispatchBelowADInplaceOrView below;
    auto [out, lse] = attention_forward(queries, keys, value, stride, scale, causal, lengths);
    variable_list saved(queries.begin(), queries.end());
    saved.insert(saved.end(), keys.begin(), keys.end());
    for (const at::Tensor& tensor : {value, out, lse, lengths.value_or(at::Tensor())})
      saved.push_back(tensor);
    ctx->save_for_backward(std::move(saved));
    ctx->saved_data["stride"] = stride;
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["causal"] = causal;
    return out;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outs) {
    const variable_list saved = ctx->get_saved_variables();
    const size_t L = (saved.size() - 4) / 2;
    const at::TensorList all(saved);
    const at::Tensor& lengths = saved[2 * L + 3];
    variable_list gradients = attention_backward(
        d_outs[0], all.slice(0, L), all.slice(L, L), saved[2 * L], saved[2 * L + 1],
        saved[2 * L + 2], ctx->saved_data["stride"].toInt(),
        ctx->saved_data["scale"].toOptional<double>(), ctx->saved_data["causal"].toBool(),
        lengths.defined() ? OptionalTensor(lengths) : std::nullopt);
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!ctx->needs_input_grad(i)) gradients[i] = at::Tensor();
    }
    gradients.resize(gradients.size() + 4);  // stride, scale, causal, lengths
    return gradients;
  }
};

class DownsampleFn : public torch::autograd::Function<DownsampleFn> {
 public:
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& depthwise_weight, const at::Tensor& depthwise_bias,
                            const at::Tensor& pointwise_weight, const at::Tensor& pointwise_bias,
                            const at::Tensor& norm_weight, const at::Tensor& norm_bias,
                            int64_t stride, double eps) {
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                            norm_weight, norm_bias});
    ctx->saved_data["stride"] = stride;
    ctx->saved_data["eps"] = eps;
    return downsample(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                      norm_weight, norm_bias, stride, eps);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outs) {
    const variable_list s = ctx->get_saved_variables();
    variable_list gradients =
        downsample_backward(d_outs[0], s[0], s[1], s[2], s[3], s[4], s[5], s[6],
                            ctx->saved_data["stride"].toInt(), ctx->saved_data["eps"].toDouble());
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!ctx->needs_input_grad(i)) gradients[i] = at::Tensor();
    }
    gradients.resize(gradients.size() + 2);  // stride, eps
    return gradients;
  }
};

class DepthwiseConvFn : public torch::autograd::Function<DepthwiseConvFn> {
 public:
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const at::Tensor& bias, int64_t stride) {
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({x, weight});
    ctx->saved_data["stride"] = stride;
    ctx->saved_data["bias_type"] = static_cast<int64_t>(bias.scalar_type());
    return depthwise_conv(x, weight, bias, stride);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outs) {
    const variable_list s = ctx->get_saved_variables();
    variable_list gradients =
        depthwise_conv_backward(d_outs[0], s[0], s[1], ctx->saved_data["stride"].toInt());
    gradients[2] =
        gradients[2].to(static_cast<at::ScalarType>(ctx->saved_data["bias_type"].toInt()));
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!ctx->needs_input_grad(i)) gradients[i] = at::Tensor();
    }
    gradients.emplace_back();  // stride
    return gradients;
  }
};

// The backward pass is linear in d_out and in (x, weight), so its derivative is the same two
// operators again, and theirs in turn: as often as one likes.
class DepthwiseConvBackwardFn : public torch::autograd::Function<DepthwiseConvBackwardFn> {
 public:
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* ctx, const at::Tensor& d_out, const at::Tensor& x,
                               const at::Tensor& weight, int64_t stride) {
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({d_out, x, weight});
    ctx->saved_data["stride"] = stride;
    return depthwise_conv_backward(d_out, x, weight, stride);
  }

  // of d_x, d_weight, d_bias; zeros where one was not used
  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &d_out = saved[0], &x = saved[1], &weight = saved[2];
    const at::Tensor &of_x = gradients[0], &of_weight = gradients[1], &of_bias = gradients[2];
    const int64_t stride = ctx->saved_data["stride"].toInt();
    variable_list result(4);  // the last: stride
    if (ctx->needs_input_grad(0)) {
      result[0] = depthwise_conv(of_x, weight, at::zeros_like(of_bias), stride) +
                  depthwise_conv(x, of_weight, of_bias, stride);
    }
    if (ctx->needs_input_grad(1))
      result[1] = depthwise_conv_backward(d_out, x, of_weight, stride)[0];
    if (ctx->needs_input_grad(2))
      result[2] = depthwise_conv_backward(d_out, of_x, weight, stride)[1];
    return result;
  }
};

// Linear in x: the derivative is the operator itself, as often as one likes.
class DropoutFn : public torch::autograd::Function<DropoutFn> {
 public:
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& seed,
                            double p) {
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->save_for_backward({seed});
    ctx->saved_data["p"] = p;
    return dropout(x, seed, p);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outs) {
    return {dropout(d_outs[0], ctx->get_saved_variables()[0], ctx->saved_data["p"].toDouble()),
            at::Tensor(), at::Tensor()};
  }
};

class UnusedFn : public torch::autograd::Function<UnusedFn> {
 public:
  static constexpr bool is_traceable = true;

  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x,
                            const at::Tensor& parameter) {
    ctx->save_for_backward({parameter});
    return x;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outs) {
    return {d_outs[0], at::zeros_like(ctx->get_saved_variables()[0])};
  }
};

// An operator without a derivative. Left to PyTorch, differentiating it would give a wrong number
// and no error: the part of the derivative that does not pass through the operator.
class NoDerivativeFn : public torch::autograd::Function<NoDerivativeFn> {
 public:
  static constexpr bool is_traceable = true;

  static variable_list forward(AutogradContext* ctx, at::TensorList,
                               const std::function<variable_list()>& call,
                               const std::string& message) {
    const at::AutoDispatchBelowADInplaceOrView below;
    ctx->saved_data["message"] = message;
    return call();
  }

  static variable_list backward(AutogradContext* ctx, const variable_list&) {
    TORCH_CHECK_NOT_IMPLEMENTED(false, ctx->saved_data["message"].toStringRef());
  }
};

constexpr char kNotTwice[] =
    " is not implemented: gradients of attention and downsample cannot be differentiated again. "
    "For second derivatives write them with PyTorch's own operators";

at::Tensor AttentionAutograd(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                             int64_t stride, std::optional<double> scale, bool causal,
                             const OptionalTensor& lengths) {
  return AttentionFn::apply(queries, keys, value, stride, scale, causal, lengths);
}

std::tuple<at::Tensor, at::Tensor> AttentionForwardAutograd(
    at::TensorList queries, at::TensorList keys, const at::Tensor& value, int64_t stride,
    std::optional<double> scale, bool causal, const OptionalTensor& lengths) {
  variable_list inputs(queries.begin(), queries.end());
  inputs.insert(inputs.end(), keys.begin(), keys.end());
  inputs.push_back(value);
  const variable_list results = NoDerivativeFn::apply(
      at::TensorList(inputs), std::function<variable_list()>([&]() -> variable_list {
        auto [out, lse] = attention_forward(queries, keys, value, stride, scale, causal, lengths);
        return {out, lse};
      }),
      std::string("the derivative of hkt::attention_forward is not implemented: call "
                  "hkt::attention, which has one"));
  return {results[0], results[1]};
}

variable_list AttentionBackwardAutograd(const at::Tensor& d_out, at::TensorList queries,
                                        at::TensorList keys, const at::Tensor& value,
                                        const at::Tensor& out, const at::Tensor& lse,
                                        int64_t stride, std::optional<double> scale, bool causal,
                                        const OptionalTensor& lengths) {
  variable_list inputs = {d_out, value, out, lse};
  inputs.insert(inputs.end(), queries.begin(), queries.end());
  inputs.insert(inputs.end(), keys.begin(), keys.end());
  return NoDerivativeFn::apply(
      at::TensorList(inputs), std::function<variable_list()>([&] {
        return attention_backward(d_out, queries, keys, value, out, lse, stride, scale, causal,
                                  lengths);
      }),
      std::string("the derivative of hkt::attention_backward") + kNotTwice);
}

at::Tensor DownsampleAutograd(const at::Tensor& x, const at::Tensor& depthwise_weight,
                              const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                              const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                              const at::Tensor& norm_bias, int64_t stride, double eps) {
  return DownsampleFn::apply(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                             norm_weight, norm_bias, stride, eps);
}

variable_list DownsampleBackwardAutograd(const at::Tensor& d_out, const at::Tensor& x,
                                         const at::Tensor& depthwise_weight,
                                         const at::Tensor& depthwise_bias,
                                         const at::Tensor& pointwise_weight,
                                         const at::Tensor& pointwise_bias,
                                         const at::Tensor& norm_weight, const at::Tensor& norm_bias,
                                         int64_t stride, double eps) {
  const variable_list inputs = {
      d_out,          x,           depthwise_weight, depthwise_bias, pointwise_weight,
      pointwise_bias, norm_weight, norm_bias};
  return NoDerivativeFn::apply(
      at::TensorList(inputs), std::function<variable_list()>([&] {
        return downsample_backward(d_out, x, depthwise_weight, depthwise_bias, pointwise_weight,
                                   pointwise_bias, norm_weight, norm_bias, stride, eps);
      }),
      std::string("the derivative of hkt::downsample_backward") + kNotTwice);
}

at::Tensor DepthwiseConvAutograd(const at::Tensor& x, const at::Tensor& weight,
                                 const at::Tensor& bias, int64_t stride) {
  return DepthwiseConvFn::apply(x, weight, bias, stride);
}

variable_list DepthwiseConvBackwardAutograd(const at::Tensor& d_out, const at::Tensor& x,
                                            const at::Tensor& weight, int64_t stride) {
  return DepthwiseConvBackwardFn::apply(d_out, x, weight, stride);
}

at::Tensor DropoutAutograd(const at::Tensor& x, const at::Tensor& seed, double p) {
  return DropoutFn::apply(x, seed, p);
}

}  // namespace

at::Tensor WithUnused(const at::Tensor& x, const at::Tensor& parameter) {
  return UnusedFn::apply(x, parameter);
}

TORCH_LIBRARY_IMPL(hkt, Autograd, m) {
  m.impl("depthwise_conv", DepthwiseConvAutograd);
  m.impl("depthwise_conv_backward", DepthwiseConvBackwardAutograd);
  m.impl("dropout", DropoutAutograd);
  m.impl("attention", AttentionAutograd);
  m.impl("attention_forward", AttentionForwardAutograd);
  m.impl("attention_backward", AttentionBackwardAutograd);
  m.impl("downsample", DownsampleAutograd);
  m.impl("downsample_backward", DownsampleBackwardAutograd);
}

}  // namespace hkt::ops
