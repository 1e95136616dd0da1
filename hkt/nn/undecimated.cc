#include "hkt/nn/undecimated.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>
#include <cmath>

#include "hkt/ops/fusion_weights.h"
#include "hkt/ops/layout.h"
#include "hkt/ops/ops.h"
#include "hkt/ops/padding.h"

namespace hkt::nn {
namespace {

constexpr int64_t kAnyStride = 2;  // of a single level it means nothing

// [H, L] weights -> column l as [H, 1, 1].
at::Tensor Column(const at::Tensor& weights, size_t l) {
  return weights.select(1, static_cast<int64_t>(l)).unsqueeze(1).unsqueeze(2);
}

}  // namespace

int64_t LevelStep(int64_t stride, size_t l) {
  int64_t step = 1;
  for (size_t i = 0; i < l; ++i) step = ops::NextStep(step, stride);
  return step;
}

at::Tensor InPhases(const at::Tensor& x, int64_t dilation,
                    const std::function<at::Tensor(const at::Tensor&)>& map) {
  const int64_t B = x.size(0), T = x.size(1), d = x.size(2);
  // Beyond the sequence every dilation reads the same zeros.
  const int64_t m = std::min(dilation, std::max<int64_t>(1, T));
  if (m == 1) return map(x);
  const int64_t n = (T + m - 1) / m;
  const at::Tensor padded = at::constant_pad_nd(x, {0, 0, 0, n * m - T});
  const at::Tensor phases = padded.reshape({B, n, m, d}).transpose(1, 2).reshape({B * m, n, d});
  const at::Tensor mapped = map(phases);
  const int64_t width = mapped.size(2);
  return mapped.reshape({B, m, n, width})
      .transpose(1, 2)
      .reshape({B, n * m, width})
      .slice(1, 0, T)
      .contiguous();
}

at::Tensor UndecimatedAttention(const std::vector<at::Tensor>& queries,
                                const std::vector<at::Tensor>& keys, const at::Tensor& value,
                                const at::Tensor& level_logits,
                                const std::optional<at::Tensor>& gate_logits,
                                const std::vector<at::Tensor>& branches, double score_gain,
                                bool causal, const std::optional<at::Tensor>& lengths) {
  const at::ScalarType type = value.scalar_type();
  const ops::FusionWeights weights = ops::MakeFusionWeights(level_logits, gate_logits, type);
  at::Tensor valid;
  if (lengths) valid = ops::AsHeads(ops::ValidRows(*lengths, value.size(2)));
  // As in ops::multiscale_attention: a weight's gradient sums over all rows, so padding is cleared
  // first.
  const auto cleared = [&](const at::Tensor& x) {
    return lengths ? ops::ZeroPadding(x, valid) : x;
  };
  std::vector<at::Tensor> folded;
  for (size_t l = 0; l < queries.size(); ++l)
    folded.push_back((cleared(queries[l]) * (Column(weights.levels, l) * score_gain)).to(type));
  const double scale = 1 / std::sqrt(static_cast<double>(queries[0].size(3)));
  at::Tensor out = ops::attention({at::cat(folded, 3)}, {at::cat(keys, 3)}, value, kAnyStride,
                                  scale, causal, lengths);
  if (!gate_logits) return out;
  out = out * Column(weights.attention, 0).to(type);
  for (size_t l = 0; l < branches.size(); ++l)
    out = out + cleared(branches[l]) * Column(weights.branches, l).to(type);
  return out;
}

}  // namespace hkt::nn
