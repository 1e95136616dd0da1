#include "hkt/analysis/attention_pairs.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/multinomial.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>

#include "hkt/analysis/softmax_error.h"
#include "hkt/analysis/truncation.h"

namespace hkt::analysis {
namespace {

constexpr int64_t kRows = 256;  // rows of T numbers per level: 6 MB at T = 1024, L = 3

}  // namespace

AttentionPairs DrawAttentionPairs(const Layer& layer, const PairScores& scores, int64_t head,
                                  int64_t pairs, uint64_t seed) {
  const int64_t T = scores.T(), R = std::min(T, kRows), L = layer.L;
  const int64_t draws = std::max<int64_t>(1, pairs / R);
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(seed);
  const at::Tensor rows =
      at::randperm(T, generator, at::TensorOptions(at::kLong)).slice(0, 0, R).contiguous();
  at::Tensor masked;
  if (layer.causal) masked = at::arange(T, at::kLong).unsqueeze(0) > rows.unsqueeze(1);
  const auto log_attention = [&](const at::Tensor& logits) {
    return at::log_softmax(layer.causal ? logits.masked_fill(masked, -INFINITY) : logits, 1);
  };
  // Keys out of the mask's reach count with weight 0; their logarithm is -inf.
  const auto expectation = [&](const at::Tensor& p, const at::Tensor& f) {
    return at::where(p > 0, p * f, 0.0).sum(1);
  };

  const at::Tensor weights = layer.weights[head];
  at::Tensor target;
  for (int64_t l = 0; l < L; ++l) {
    const at::Tensor term = layer.score_gain * weights[l] * scores.Rows(head, l, rows, true);
    target = l == 0 ? term : target + term;
  }
  const at::Tensor log_p = log_attention(target), p = log_p.exp();

  AttentionPairs result;
  result.draws = draws;
  at::Tensor partial;  // sum_{l < L'} w_l S^(l)
  for (int64_t levels = 1; levels <= L; ++levels) {
    const at::Tensor term = weights[levels - 1] * scores.Rows(head, levels - 1, rows, false);
    partial = levels == 1 ? term : partial + term;
    const at::Tensor model = layer.score_gain * partial / weights.narrow(0, 0, levels).sum();
    const at::Tensor log_q = log_attention(model), D = target - model;
    const auto bounded = [&](double fill) {
      return layer.causal ? D.masked_fill(masked, fill) : D;
    };
    const at::Tensor range = bounded(-INFINITY).amax(1) - bounded(INFINITY).amin(1);
    const at::Tensor mean = expectation(p, D).unsqueeze(1);
    const at::Tensor variance = expectation(p, (D - mean).square());
    result.rows.push_back({.kl = expectation(p, log_p - log_q),
                           .range_bound = KlBoundOfRange(range),
                           .variance_bound = KlBoundOfVariance(variance, range),
                           .l1 = (p - log_q.exp()).abs().sum(1),
                           .l1_bound = L1BoundOfRange(range)});
  }
  const at::Tensor keys = at::multinomial(p, draws, /*replacement=*/true, generator);
  result.columns = scores.Weighted(head, rows, p, keys);
  return result;
}

}  // namespace hkt::analysis
