// hkt::multiscale_attention: lambda, gates and fusion around hkt::attention, as a composite of
// differentiable operators. It has no kernel of its own.

#include <ATen/TensorOperators.h>
#include <ATen/ops/addcmul.h>
#include <torch/library.h>

#include <vector>

#include "hkt/ops/checks.h"
#include "hkt/ops/fusion_weights.h"
#include "hkt/ops/layout.h"
#include "hkt/ops/ops.h"
#include "hkt/ops/padding.h"
#include "hkt/ops/repeat.h"
#include "hkt/ops/unused.h"

namespace hkt::ops {

namespace {

using OptionalTensor = std::optional<at::Tensor>;

// [H, L] weights -> column l as [H, 1, 1].
at::Tensor LevelColumn(const at::Tensor& weights, size_t level) {
  return weights.select(1, static_cast<int64_t>(level)).unsqueeze(1).unsqueeze(2);
}

at::Tensor MultiscaleComposite(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                               const at::Tensor& level_logits, const OptionalTensor& gate_logits,
                               at::TensorList branches, int64_t stride, std::optional<double> scale,
                               double score_gain, bool causal, const OptionalTensor& lengths) {
  CheckAttention(queries, keys, value, stride, lengths, Types::kAnyUnderAutocast);
  CheckMultiscale(queries, value, level_logits, gate_logits, branches);
  const bool hybrid = gate_logits && gate_logits->defined();
  const at::ScalarType type = queries[0].scalar_type();
  const FusionWeights fusion = MakeFusionWeights(level_logits, gate_logits, type);
  const at::Tensor weights = score_gain == 1.0 ? fusion.levels : fusion.levels * score_gain;

  const bool padded = lengths && lengths->defined();
  std::vector<at::Tensor> folded;
  int64_t step = 1;
  if (queries.size() == 1) {
    // The weight of a single level is 1 whatever the logits, and the product with it would cost a
    // pass over the queries forward and three backward.
    const at::Tensor q = hybrid ? queries[0] : WithUnused(queries[0], level_logits);
    folded = {score_gain == 1.0 ? q : q * score_gain};
  } else {
    // The gradient of a weight sums over all rows of its query, so padding is cleared before the
    // product, not after it.
    for (size_t l = 0; l < queries.size(); ++l) {
      at::Tensor q = queries[l];
      if (padded) q = ZeroPadding(q, AsHeads(ValidRows(*lengths, q.sym_size(2), step)));
      folded.push_back((q * LevelColumn(weights, l)).to(type));
      step = NextStep(step, stride);
    }
  }
  at::Tensor out = attention(folded, keys, value, stride, scale, causal, lengths);
  if (!hybrid) return out;

  const c10::SymInt T = value.sym_size(2);
  out = out * LevelColumn(fusion.attention, 0).to(type);
  step = 1;
  for (size_t l = 0; l < branches.size(); ++l) {
    at::Tensor branch = branches[l];
    if (padded)
      branch = ZeroPadding(branch, AsHeads(ValidRows(*lengths, branch.sym_size(2), step)));
    const at::Tensor share = LevelColumn(fusion.branches, l).to(type);
    out = l == 0 ? at::addcmul(out, branch, share) : out + RepeatToFull(branch * share, step, 2, T);
    step = NextStep(step, stride);
  }
  // A coarse position that begins before the end reaches behind it.
  return padded ? ZeroPadding(out, AsHeads(ValidRows(*lengths, T, 1))) : out;
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, CompositeImplicitAutograd, m) {
  m.impl("multiscale_attention", MultiscaleComposite);
}

}  // namespace hkt::ops
