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
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/ops/causal_conv.h"
#include "hkt/ops/checks.h"
#include "hkt/ops/explain.h"
#include "hkt/ops/layout.h"
#include "hkt/ops/ops.h"
#include "hkt/ops/padding.h"

namespace hkt::ops {
namespace {

using OptionalTensor = std::optional<at::Tensor>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The concatenated form: with the coarse rows repeated to full resolution, sum_l Q^(l)[i/s^l] .
// K^(l)[j/s^l] is one inner product of width L*D. Padding is selected away, so that NaN there meets
// no arithmetic.
struct Concatenated {
  at::Tensor q;      // [B, H, T, L*D]
  at::Tensor k;      // [B, Hkv, T, L*D]
  at::Tensor v;      // [B, Hkv, T, Dv]
  at::Tensor valid;  // [B, 1, T, 1], or undefined: every row
  at::Tensor mask;   // [B, 1, 1, T], true where a key takes part; undefined where causality or
                     // nothing decides
  bool causal;
  double scale;
};

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

// ---- PyTorch's fused kernels ---------------------------------------------------------------

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
};

Choice ChoosePath(const Concatenated& x, bool backward) {
  // The flash kernel of PyTorch 2.9 divides by the number of heads.
  if (x.q.numel() == 0) return {Path::kChunked, "it is empty"};
  const bool flash = at::globalContext().userEnabledFlashSDP();
  if (x.q.is_cpu()) {
    if (!flash) return {Path::kChunked, "flash attention is switched off"};
    return {Path::kFlash, WhyNoKernel(x.q.scalar_type())};
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
  if (choice == at::SDPBackend::efficient_attention) return {Path::kEfficient, found};
  // cuDNN's kernel is not called; where it would be chosen the others take the call as well. Some
  // processors have no flash backward above a width of 192.
  const bool wide = fused.q.size(3) > (backward ? 192 : 256);
  if (choice == at::SDPBackend::flash_attention || choice == at::SDPBackend::cudnn_attention) {
    if (flash && !wide && !fused.bias) return {Path::kFlash, found};
    if (at::globalContext().userEnabledMemEfficientSDP()) return {Path::kEfficient, found};
  }
  return {Path::kChunked, "none of PyTorch's fused kernels takes it"};
}

std::tuple<at::Tensor, at::Tensor> ForwardFused(const Concatenated& x, Path path) {
  const Fused f = Fuse(x);
  at::Tensor out, lse;
  if (path == Path::kEfficient) {
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

struct FullGradients {
  at::Tensor q, k, v;  // of Concatenated
};

FullGradients BackwardFused(const Concatenated& x, Path path, const at::Tensor& d_out,
                            const at::Tensor& out, const at::Tensor& lse) {
  const Fused f = Fuse(x);
  const int64_t B = x.q.size(0), H = x.q.size(1), T = x.q.size(2), Hkv = x.k.size(1);
  const int64_t width = f.q.size(3);
  // The memory-efficient kernel takes the rows of out to lie as in [B, T, H, width] memory.
  const at::Tensor o = AsRowMemory(PadLast(out, width)), d_o = PadLast(d_out, width);
  // Seeds of a dropout that there is not.
  const auto seed = [&] { return at::zeros({}, x.q.options().dtype(at::kLong)); };
  at::Tensor d_q, d_k, d_v;
  if (path == Path::kEfficient) {
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

// ---- Rows in chunks ------------------------------------------------------------------------

// Scores of one chunk: 2^22 of them, 16 MiB in float32, or those of one row of every head.
int64_t ChunkRows(int64_t B, int64_t H, int64_t T) {
  return std::clamp<int64_t>((int64_t{1} << 22) / std::max<int64_t>(B * H * T, 1), 1,
                             std::max<int64_t>(T, 1));
}

// The rows of a chunk side by side for the G = H / Hkv query heads of a key head: two matrix
// products a chunk, and keys are never repeated.
struct Chunks {
  const Concatenated& x;
  at::ScalarType exact = ExactType(x.q.scalar_type());
  int64_t B = x.q.size(0), H = x.q.size(1), T = x.q.size(2), Hkv = x.k.size(1);
  int64_t G = Hkv == 0 ? 1 : H / Hkv, rows = ChunkRows(B, H, T);
  at::Tensor q = Grouped(x.q), k = x.k.to(exact), v = x.v.to(exact);
  at::Tensor tokens = at::arange(T, x.q.options().dtype(at::kLong));

  // [B, H, T, W] -> [B, Hkv, G, T, W], exact.
  at::Tensor Grouped(const at::Tensor& full) const {
    return full.to(exact).reshape({B, Hkv, G, full.size(2), full.size(3)});
  }
  // Rows first … first + count of it, as [B, Hkv, G * count, W].
  at::Tensor Rows(const at::Tensor& grouped, int64_t first, int64_t count) const {
    return grouped.slice(3, first, first + count).reshape({B, Hkv, G * count, grouped.size(4)});
  }
  at::Tensor Apart(const at::Tensor& joined, int64_t count) const {
    return joined.reshape({B, Hkv, G, count, joined.size(3)});
  }
  // Keys that rows before `end` may see.
  int64_t Seen(int64_t end) const { return x.causal ? end : T; }

  // Scores [B, Hkv, G, count, seen], minus infinity where masked: a select, as a later key may be
  // NaN.
  at::Tensor Scores(int64_t first, int64_t count, int64_t seen) const {
    const at::Tensor keys = k.slice(2, 0, seen).transpose(2, 3);
    at::Tensor scores = Apart(at::matmul(Rows(q, first, count), keys).mul_(x.scale), count);
    if (x.causal) {
      const at::Tensor future = tokens.slice(0, 0, seen)
                                    .unsqueeze(0)
                                    .gt(tokens.slice(0, first, first + count).unsqueeze(1));
      scores.masked_fill_(future, -kInfinity);
    }
    if (x.mask.defined())
      scores.masked_fill_(x.mask.slice(3, 0, seen).logical_not().unsqueeze(2), -kInfinity);
    return scores;
  }
};

std::tuple<at::Tensor, at::Tensor> ForwardChunked(const Concatenated& x) {
  const Chunks c{x};
  const auto options = x.q.options().dtype(c.exact);
  at::Tensor out = at::empty({c.B, c.Hkv, c.G, c.T, x.v.size(3)}, x.q.options());
  at::Tensor lse = at::empty({c.B, c.Hkv, c.G, c.T}, options);
  for (int64_t first = 0; first < c.T && x.q.numel() > 0; first += c.rows) {
    const int64_t count = std::min(c.rows, c.T - first), seen = c.Seen(first + count);
    at::Tensor weights = c.Scores(first, count, seen);
    const at::Tensor largest = weights.amax(4, /*keepdim=*/true);
    weights.sub_(largest).exp_();
    const at::Tensor sum = weights.sum(4, /*keepdim=*/true);
    const at::Tensor product =
        at::matmul(weights.reshape({c.B, c.Hkv, c.G * count, seen}), c.v.slice(2, 0, seen));
    out.slice(3, first, first + count).copy_(c.Apart(product, count).div(sum));
    lse.slice(3, first, first + count).copy_((largest + sum.log()).squeeze(4));
  }
  return {out.reshape({c.B, c.H, c.T, x.v.size(3)}), lse.reshape({c.B, c.H, c.T})};
}

FullGradients BackwardChunked(const Concatenated& x, const at::Tensor& d_out, const at::Tensor& out,
                              const at::Tensor& lse) {
  const Chunks c{x};
  const at::Tensor d_o = c.Grouped(d_out), rows_lse = lse.reshape({c.B, c.Hkv, c.G, c.T, 1});
  const at::Tensor delta = c.Grouped(out).mul(d_o).sum(4, /*keepdim=*/true);
  at::Tensor d_q = at::zeros_like(c.q), d_k = at::zeros_like(c.k), d_v = at::zeros_like(c.v);
  for (int64_t first = 0; first < c.T && x.q.numel() > 0; first += c.rows) {
    const int64_t count = std::min(c.rows, c.T - first), seen = c.Seen(first + count);
    const auto joined = [&](const at::Tensor& wide) {
      return wide.reshape({c.B, c.Hkv, c.G * count, seen});
    };
    const at::Tensor d_rows = c.Rows(d_o, first, count), q_rows = c.Rows(c.q, first, count);
    at::Tensor weights = c.Scores(first, count, seen);
    weights.sub_(rows_lse.slice(3, first, first + count)).exp_();
    d_v.slice(2, 0, seen).add_(at::matmul(joined(weights).transpose(2, 3), d_rows));
    at::Tensor d_scores = c.Apart(at::matmul(d_rows, c.v.slice(2, 0, seen).transpose(2, 3)), count);
    d_scores.sub_(delta.slice(3, first, first + count)).mul_(weights).mul_(x.scale);
    d_q.slice(3, first, first + count)
        .copy_(c.Apart(at::matmul(joined(d_scores), c.k.slice(2, 0, seen)), count));
    d_k.slice(2, 0, seen).add_(at::matmul(joined(d_scores).transpose(2, 3), q_rows));
  }
  return {d_q.reshape({c.B, c.H, c.T, x.q.size(3)}), d_k, d_v};
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
  auto [out, lse] =
      choice.path == Path::kChunked ? ForwardChunked(x) : ForwardFused(x, choice.path);
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
  const FullGradients d = choice.path == Path::kChunked
                              ? BackwardChunked(x, d_o, o, rows)
                              : BackwardFused(x, choice.path, d_o, o, rows);
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
