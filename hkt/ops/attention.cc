// hkt::attention and hkt::multiscale_attention as composites of PyTorch's own operators: they run
// on every device, autograd goes through their parts, and sizes stay symbolic for torch.compile.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/slice.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>
#include <torch/library.h>

#include <cmath>
#include <vector>

#include "hkt/ops/causal_conv.h"
#include "hkt/ops/checks.h"
#include "hkt/ops/ops.h"
#include "hkt/ops/padding.h"

namespace hkt::ops {

at::Tensor ValidRows(const at::Tensor& lengths, const c10::SymInt& positions, int64_t step) {
  const at::Tensor first_token = at::arange(0, positions * step, step, lengths.options());
  return first_token.lt(lengths.unsqueeze(1));
}

at::Tensor ZeroPadding(const at::Tensor& x, const at::Tensor& valid) {
  return at::where(valid, x, 0);
}

namespace {

using OptionalTensor = std::optional<at::Tensor>;

// Tokens a position at the next level. Saturates far above any T: such a level has one position,
// and only that counts.
int64_t NextStep(int64_t step, int64_t stride) {
  constexpr int64_t kMost = int64_t{1} << 40;
  return step > kMost / stride ? kMost : step * stride;
}

// [B, T_l] -> [B, 1, T_l, 1], to select rows of [B, H, T_l, D].
at::Tensor AsHeads(const at::Tensor& valid) { return valid.unsqueeze(1).unsqueeze(3); }

// [B, Hkv, T, D] -> [B, H, T, D]: every key/value head under its H / Hkv query heads.
at::Tensor RepeatHeads(const at::Tensor& x, const c10::SymInt& H) {
  const c10::SymInt Hkv = x.sym_size(1);
  if (Hkv == H) return x;
  const c10::SymInt B = x.sym_size(0), T = x.sym_size(2), D = x.sym_size(3), G = H / Hkv;
  return x.unsqueeze(2).expand_symint({B, Hkv, G, T, D}).reshape_symint({B, H, T, D});
}

at::Tensor PadLast(const at::Tensor& x, const c10::SymInt& width) {
  const c10::SymInt missing = width - x.sym_size(3);
  return missing == 0 ? x : at::constant_pad_nd_symint(x, {0, missing});
}

// The concatenated form: with the coarse rows repeated to full resolution, sum_l Q^(l)[i/s^l] .
// K^(l)[j/s^l] is one inner product of width L*D, so that PyTorch's flash kernels do the rest in
// O(T) memory. They want one head width for queries, keys and values: the narrower side is padded
// with zeros.
at::Tensor AttentionComposite(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                              int64_t stride, std::optional<double> scale, bool causal,
                              const OptionalTensor& lengths) {
  CheckAttention(queries, keys, value, stride, lengths);
  const bool padded = lengths && lengths->defined();
  const c10::SymInt H = queries[0].sym_size(1), T = queries[0].sym_size(2), Dv = value.sym_size(3);
  const double factor = scale ? *scale
                              : 1.0 / std::sqrt(static_cast<double>(
                                          queries[0].sym_size(3).guard_int(__FILE__, __LINE__)));

  std::vector<at::Tensor> full_queries, full_keys;
  int64_t step = 1;
  for (size_t l = 0; l < queries.size(); ++l) {
    at::Tensor q = queries[l], k = keys[l];
    if (padded) {
      const at::Tensor valid = AsHeads(ValidRows(*lengths, q.sym_size(2), step));
      q = ZeroPadding(q, valid);
      k = ZeroPadding(k, valid);
    }
    full_queries.push_back(RepeatToFull(q, step, 2, T));
    full_keys.push_back(RepeatToFull(k, step, 2, T));
    step = NextStep(step, stride);
  }
  at::Tensor q = full_queries.size() == 1 ? full_queries[0] : at::cat(full_queries, 3);
  at::Tensor k = full_keys.size() == 1 ? full_keys[0] : at::cat(full_keys, 3);
  at::Tensor v = value, valid;
  if (padded) {
    valid = AsHeads(ValidRows(*lengths, T, 1));
    v = ZeroPadding(v, valid);
  }
  const c10::SymInt width = q.sym_size(3).max(Dv);
  q = PadLast(q, width);
  k = RepeatHeads(PadLast(k, width), H);
  v = RepeatHeads(PadLast(v, width), H);

  // An empty product, with its gradients: the flash kernel of PyTorch 2.9 divides by the number of
  // heads.
  if (q.sym_size(0) == 0 || H == 0 || T == 0) {
    const at::Tensor empty = at::matmul(at::matmul(q, k.transpose(2, 3)), v);
    return at::slice_symint(empty, 3, 0, Dv).transpose(1, 2).contiguous().transpose(1, 2);
  }

  // Under the causal mask a valid row sees valid keys only. Without it the padding is masked away;
  // a sequence without any token is given its first key, all zeros by now, so that no row is
  // without a key inside the kernel.
  OptionalTensor mask;
  if (padded && !causal) mask = ValidRows(lengths->clamp_min(1), T, 1).unsqueeze(1).unsqueeze(1);
  at::Tensor out = at::scaled_dot_product_attention(q, k, v, mask, 0.0, causal, factor);
  if (width != Dv) out = at::slice_symint(out, 3, 0, Dv);
  if (padded) out = ZeroPadding(out, valid);
  return out.transpose(1, 2).contiguous().transpose(1, 2);
}

// [H, L] weights -> column l as [H, 1, 1].
at::Tensor LevelColumn(const at::Tensor& weights, size_t level) {
  return weights.select(1, static_cast<int64_t>(level)).unsqueeze(1).unsqueeze(2);
}

at::Tensor MultiscaleComposite(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                               const at::Tensor& level_logits, const OptionalTensor& gate_logits,
                               at::TensorList branches, int64_t stride, std::optional<double> scale,
                               double score_gain, bool causal, const OptionalTensor& lengths) {
  CheckAttention(queries, keys, value, stride, lengths);
  CheckMultiscale(queries, value, level_logits, gate_logits, branches);
  const bool hybrid = gate_logits && gate_logits->defined();
  const at::ScalarType type = queries[0].scalar_type();
  const at::ScalarType exact = type == at::kDouble ? at::kDouble : at::kFloat;

  // With gates w_l = lambda_l beta_l / bbar; in logarithms it is finite for every gate logit, where
  // the quotient is 0 / 0.
  at::Tensor weights, log_lambda, log_gated;
  if (hybrid) {
    log_lambda = at::log_softmax(level_logits.to(exact), 1);
    log_gated = log_lambda + at::log_sigmoid(gate_logits->to(exact));
    weights = at::softmax(log_gated, 1);
  } else {
    weights = at::softmax(level_logits.to(exact), 1);
  }
  if (score_gain != 1.0) weights = weights * score_gain;

  // The gradient of a weight sums over all rows of its query, so padding is cleared before the
  // product, not after it.
  const bool padded = lengths && lengths->defined();
  std::vector<at::Tensor> folded;
  int64_t step = 1;
  for (size_t l = 0; l < queries.size(); ++l) {
    at::Tensor q = queries[l];
    if (padded) q = ZeroPadding(q, AsHeads(ValidRows(*lengths, q.sym_size(2), step)));
    folded.push_back((q * LevelColumn(weights, l)).to(type));
    step = NextStep(step, stride);
  }
  at::Tensor out = attention(folded, keys, value, stride, scale, causal, lengths);
  if (!hybrid) return out;

  const c10::SymInt T = value.sym_size(2);
  const at::Tensor bbar = at::logsumexp(log_gated, {1}, /*keepdim=*/true).exp();  // [H, 1]
  const at::Tensor shares =
      log_lambda.exp() * at::sigmoid(-gate_logits->to(exact));  // lambda_l (1 - beta_l)
  out = out * LevelColumn(bbar, 0).to(type);
  step = 1;
  for (size_t l = 0; l < branches.size(); ++l) {
    at::Tensor branch = branches[l];
    if (padded)
      branch = ZeroPadding(branch, AsHeads(ValidRows(*lengths, branch.sym_size(2), step)));
    out = out + RepeatToFull(branch * LevelColumn(shares, l).to(type), step, 2, T);
    step = NextStep(step, stride);
  }
  // A coarse position that begins before the end reaches behind it.
  return padded ? ZeroPadding(out, AsHeads(ValidRows(*lengths, T, 1))) : out;
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, CompositeImplicitAutograd, m) {
  m.impl("attention", AttentionComposite);
  m.impl("multiscale_attention", MultiscaleComposite);
}

}  // namespace hkt::ops
