#include "hkt/ops/attention_composite.h"

#include <ATen/Context.h>
#include <ATen/SDPBackend.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_sdp_choice.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_backward.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/ops/attention_chunked.h"
#include "hkt/ops/checks.h"
#include "hkt/ops/explain.h"
#include "hkt/ops/layout.h"
#include "hkt/ops/ops.h"
#include "hkt/ops/padding.h"
#include "hkt/ops/repeat.h"

namespace hkt::ops {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Concatenated Concatenate(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                         int64_t stride, std::optional<double> scale, bool causal,
                         const OptionalTensor& lengths) {
  const int64_t T = value.size(2);
  const bool padded = lengths && lengths->defined();
  std::vector<at::Tensor> full_queries, full_keys;
  int64_t step = 1;
  for (size_t l = 0; l < queries.size(); ++l) {
    at::Tensor q = queries[l], k = keys[l];
    if (padded) {
      const at::Tensor valid = AsHeads(ValidRows(*lengths, q.size(2), step));
      q = ZeroPadding(q, valid);
      k = ZeroPadding(k, valid);
    }
    full_queries.push_back(RepeatToFull(q, step, 2, T));
    full_keys.push_back(RepeatToFull(k, step, 2, T));
    step = NextStep(step, stride);
  }
  Concatenated x;
  x.q = full_queries.size() == 1 ? full_queries[0] : at::cat(full_queries, 3);
  x.k = full_keys.size() == 1 ? full_keys[0] : at::cat(full_keys, 3);
  x.v = value;
  x.causal = causal;
  x.scale = scale.value_or(1.0 / std::sqrt(static_cast<double>(queries[0].size(3))));
  if (padded) {
    x.valid = AsHeads(ValidRows(*lengths, T));
    x.v = ZeroPadding(value, x.valid);
    // Under the causal mask a valid row sees valid keys only. Without it a sequence without any
    // token keeps its first key, all zeros by now, so that no row of a kernel is without a key.
    if (!causal) x.mask = ValidRows(lengths->clamp_min(1), T).unsqueeze(1).unsqueeze(1);
  }
  return x;
}

// [B, H, T, L*D] -> the levels' [B, H, T_l, D], each coarse row the sum over its cell.
std::vector<at::Tensor> SplitLevels(const at::Tensor& d_full, at::TensorList like, int64_t stride) {
  const int64_t B = d_full.size(0), H = d_full.size(1), T = d_full.size(2), D = like[0].size(3);
  std::vector<at::Tensor> levels;
  int64_t step = 1;
  for (size_t l = 0; l < like.size(); ++l) {
    at::Tensor level =
        d_full.slice(3, static_cast<int64_t>(l) * D, static_cast<int64_t>(l + 1) * D);
    const int64_t Tl = like[l].size(2);
    if (step > 1 && Tl == 1) {
      level = level.sum(2, /*keepdim=*/true);
    } else if (step > 1) {
      level = at::constant_pad_nd(level, {0, 0, 0, Tl * step - T});
      level = level.reshape({B, H, Tl, step, D}).sum(3);
    }
    levels.push_back(AsRowMemory(level.to(like[l].scalar_type())));
    step = NextStep(step, stride);
  }
  return levels;
}

// lse as kernels want it in the backward pass: rows of the padding get weights exp(S - inf) = 0,
// where with minus infinity they would be exp(inf).
at::Tensor WithoutPadding(const at::Tensor& lse, const at::Tensor& valid) {
  return valid.defined() ? at::where(valid.squeeze(3), lse, kInfinity) : lse;
}

// They want dense rows of one width for queries, keys and values (on CUDA a multiple of 8), as many
// key heads as query heads, and the mask as an addend.
struct Fused {
  at::Tensor q, k, v;   // [B, H, T, width]
  OptionalTensor bias;  // broadcasts to [B, H, T, T]
};

at::Tensor PadLast(const at::Tensor& x, int64_t width) {
  const int64_t missing = width - x.size(3);
  return missing == 0 ? x : at::constant_pad_nd(x, {0, missing});
}

// [B, Hkv, T, D] -> [B, H, T, D]: every key/value head under its H / Hkv query heads.
at::Tensor RepeatHeads(const at::Tensor& x, int64_t H) {
  const int64_t B = x.size(0), Hkv = x.size(1), T = x.size(2), D = x.size(3);
  if (Hkv == H) return x;
  return x.unsqueeze(2).expand({B, Hkv, H / Hkv, T, D}).reshape({B, H, T, D});
}

at::Tensor Dense(const at::Tensor& x) {
  return x.is_contiguous() || x.transpose(1, 2).is_contiguous() ? x : x.contiguous();
}

int64_t FusedWidth(const Concatenated& x) {
  const int64_t width = std::max(x.q.size(3), x.v.size(3));
  return x.q.is_cuda() ? CeilDiv(width, 8) * 8 : width;
}

Fused Fuse(const Concatenated& x) {
  const int64_t H = x.q.size(1), width = FusedWidth(x);
  Fused fused{Dense(PadLast(x.q, width)), Dense(RepeatHeads(PadLast(x.k, width), H)),
              Dense(RepeatHeads(PadLast(x.v, width), H)), std::nullopt};
  if (!x.mask.defined()) return fused;
  const int64_t B = x.q.size(0), T = x.q.size(2);
  at::Tensor bias =
      at::where(x.mask, at::zeros({}, x.q.options()), at::full({}, -kInfinity, x.q.options()));
  if (x.q.is_cuda()) {
    // The memory-efficient kernel wants rows of the bias at multiples of 16 elements.
    bias = PadLast(bias, CeilDiv(T, 16) * 16).slice(3, 0, T).expand({B, H, T, T});
  }
  fused.bias = bias;
  return fused;
}

enum class Path { kChunked, kFlash, kEfficient };

struct Choice {
  Path path;
  std::string why;
  Fused fused = {};  // unless rows go in chunks
};

Choice ChoosePath(const Concatenated& x, bool backward) {
  // The flash kernel of PyTorch 2.9 divides by the number of heads.
  if (x.q.numel() == 0) return {Path::kChunked, "it is empty"};
  // PyTorch's CPU kernel multiplies the mask's minus infinity by the scale.
  if (!(x.scale > 0)) return {Path::kChunked, "its scale is not above 0"};
  const bool flash = at::globalContext().userEnabledFlashSDP();
  if (x.q.is_cpu()) {
    if (!flash) return {Path::kChunked, "flash attention is switched off"};
    return {Path::kFlash, WhyNoKernel(x.q.scalar_type()), Fuse(x)};
  }
  const std::string device = x.q.device().str();
  if (!x.q.is_cuda()) return {Path::kChunked, Concat(device, " has no fused kernel used here")};
  const Fused fused = Fuse(x);
  auto choice = at::SDPBackend::math;
  try {
    choice = static_cast<at::SDPBackend>(
        at::_fused_sdp_choice(fused.q, fused.k, fused.v, fused.bias, 0.0, x.causal, x.scale));
  } catch (const c10::Error&) {
    // None is left when the caller switched off what would take the call; rows in chunks will.
  }
  const std::string found = Concat(device, " has a kernel for it");
  if (choice == at::SDPBackend::efficient_attention) return {Path::kEfficient, found, fused};
  // cuDNN's kernel is not called; where it would be chosen the others take the call as well. Some
  // processors have no flash backward above a width of 192.
  const bool wide = fused.q.size(3) > (backward ? 192 : 256);
  if (choice == at::SDPBackend::flash_attention || choice == at::SDPBackend::cudnn_attention) {
    if (flash && !wide && !fused.bias) return {Path::kFlash, found, fused};
    if (at::globalContext().userEnabledMemEfficientSDP()) return {Path::kEfficient, found, fused};
  }
  return {Path::kChunked, "none of PyTorch's fused kernels takes it"};
}

std::tuple<at::Tensor, at::Tensor> ForwardFused(const Concatenated& x, const Choice& choice) {
  const Fused& f = choice.fused;
  at::Tensor out, lse;
  if (choice.path == Path::kEfficient) {
    std::tie(out, lse, std::ignore, std::ignore) = at::_scaled_dot_product_efficient_attention(
        f.q, f.k, f.v, f.bias, /*compute_log_sumexp=*/true, 0.0, x.causal, x.scale);
    lse = lse.slice(2, 0, x.q.size(2));  // its rows are padded to a multiple of 32
  } else if (x.q.is_cpu()) {
    std::tie(out, lse) = at::_scaled_dot_product_flash_attention_for_cpu(f.q, f.k, f.v, 0.0,
                                                                         x.causal, f.bias, x.scale);
  } else {
    const auto result = at::_scaled_dot_product_flash_attention(
        f.q, f.k, f.v, 0.0, x.causal, /*return_debug_mask=*/false, x.scale);
    out = std::get<0>(result);
    lse = std::get<1>(result);
  }
  return {out.slice(3, 0, x.v.size(3)), lse};
}

FullGradients BackwardFused(const Concatenated& x, const Choice& choice, const at::Tensor& d_out,
                            const at::Tensor& out, const at::Tensor& lse) {
  const Fused& f = choice.fused;
  const int64_t B = x.q.size(0), H = x.q.size(1), T = x.q.size(2), Hkv = x.k.size(1);
  const int64_t width = f.q.size(3);
  // The memory-efficient kernel takes the rows of out to lie as in [B, T, H, width] memory.
  const at::Tensor o = AsRowMemory(PadLast(out, width)), d_o = PadLast(d_out, width);
  // Seeds of a dropout that there is not.
  const auto seed = [&] { return at::zeros({}, x.q.options().dtype(at::kLong)); };
  at::Tensor d_q, d_k, d_v;
  if (choice.path == Path::kEfficient) {
    const at::Tensor rows =
        at::constant_pad_nd(lse, {0, CeilDiv(T, 32) * 32 - T}, kInfinity).contiguous();
    std::tie(d_q, d_k, d_v, std::ignore) = at::_scaled_dot_product_efficient_attention_backward(
        d_o, f.q, f.k, f.v, f.bias.value_or(at::Tensor()), o, rows, seed(), seed(), 0.0,
        {true, true, true, false}, x.causal, x.scale);
  } else if (x.q.is_cpu()) {
    std::tie(d_q, d_k, d_v) = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        d_o, f.q, f.k, f.v, o, lse, 0.0, x.causal, f.bias, x.scale);
  } else {
    std::tie(d_q, d_k, d_v) = at::_scaled_dot_product_flash_attention_backward(
        d_o, f.q, f.k, f.v, o, lse.contiguous(), at::Tensor(), at::Tensor(), T, T, 0.0, x.causal,
        seed(), seed(), x.scale);
  }
  const auto sum_heads = [&](const at::Tensor& d_x) {
    return Hkv == H ? d_x : d_x.reshape({B, Hkv, H / Hkv, T, width}).sum(2);
  };
  return {d_q.slice(3, 0, x.q.size(3)), sum_heads(d_k).slice(3, 0, x.k.size(3)),
          sum_heads(d_v).slice(3, 0, x.v.size(3))};
}

void ExplainPath(const char* op, const Choice& choice, at::TensorList queries,
                 const at::Tensor& value, int64_t stride, bool causal,
                 const OptionalTensor& lengths) {
  if (!Explaining()) return;
  const char* path = choice.path == Path::kFlash       ? "composite flash"
                     : choice.path == Path::kEfficient ? "composite memory-efficient"
                                                       : "composite chunked";
  Explain(op, path, choice.why,
          DescribeAttention(queries, value, stride, causal, lengths && lengths->defined()));
}

at::Tensor AttentionOfForward(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                              int64_t stride, std::optional<double> scale, bool causal,
                              const OptionalTensor& lengths) {
  return std::get<0>(attention_forward(queries, keys, value, stride, scale, causal, lengths));
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> AttentionForwardComposite(
    at::TensorList queries, at::TensorList keys, const at::Tensor& value, int64_t stride,
    std::optional<double> scale, bool causal, const OptionalTensor& lengths) {
  CheckAttention(queries, keys, value, stride, lengths);
  // The caller chose the types; the products inside are not to be cast again.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Concatenated x = Concatenate(queries, keys, value, stride, scale, causal, lengths);
  const Choice choice = ChoosePath(x, /*backward=*/false);
  ExplainPath("attention_forward", choice, queries, value, stride, causal, lengths);
  auto [out, lse] = choice.path == Path::kChunked ? ForwardChunked(x) : ForwardFused(x, choice);
  if (x.valid.defined()) {
    out = ZeroPadding(out, x.valid);
    lse = at::where(x.valid.squeeze(3), lse, -kInfinity);
  }
  return {AsRowMemory(out), lse.contiguous()};
}

std::vector<at::Tensor> AttentionBackwardComposite(const at::Tensor& d_out, at::TensorList queries,
                                                   at::TensorList keys, const at::Tensor& value,
                                                   const at::Tensor& out, const at::Tensor& lse,
                                                   int64_t stride, std::optional<double> scale,
                                                   bool causal, const OptionalTensor& lengths) {
  CheckAttentionBackward(d_out, queries, keys, value, out, lse, stride, lengths);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Concatenated x = Concatenate(queries, keys, value, stride, scale, causal, lengths);
  const Choice choice = ChoosePath(x, /*backward=*/true);
  ExplainPath("attention_backward", choice, queries, value, stride, causal, lengths);
  const bool padded = x.valid.defined();
  const at::Tensor d_o = padded ? ZeroPadding(d_out, x.valid) : d_out;
  const at::Tensor o = padded ? ZeroPadding(out, x.valid) : out;
  const at::Tensor rows = WithoutPadding(lse, x.valid);
  const FullGradients d = choice.path == Path::kChunked ? BackwardChunked(x, d_o, o, rows)
                                                        : BackwardFused(x, choice, d_o, o, rows);
  std::vector<at::Tensor> gradients = SplitLevels(d.q, queries, stride);
  for (at::Tensor& key : SplitLevels(d.k, keys, stride)) gradients.push_back(std::move(key));
  gradients.push_back(AsRowMemory(d.v.to(value.scalar_type())));
  return gradients;
}

TORCH_LIBRARY_IMPL(hkt, CompositeExplicitAutograd, m) {
  m.impl("attention", AttentionOfForward);
  m.impl("attention_forward", AttentionForwardComposite);
  m.impl("attention_backward", AttentionBackwardComposite);
}

}  // namespace hkt::ops
