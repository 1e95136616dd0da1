#include "hkt/analysis/cost.h"

#include <cmath>

#include "hkt/base/dims.h"
#include "hkt/nn/hkt_attention.h"

namespace hkt::analysis {
namespace {

int64_t AttentionParameters(const ModelConfig& m) {
  return nn::ParameterCount(nn::HktAttentionOptions{.d_model = m.d_model,
                                                    .heads = m.heads,
                                                    .kv_heads = *m.kv_heads,
                                                    .levels = *m.levels,
                                                    .stride = m.stride,
                                                    .kernel_size = m.kernel_size,
                                                    .hybrid = *m.hybrid,
                                                    .psd = m.psd,
                                                    .bias = m.bias});
}

Json Row(const char* part, int64_t standard, int64_t hkt) {
  return {{"part", part},
          {"standard", standard},
          {"this", hkt},
          {"ratio", standard > 0 ? Json(static_cast<double>(hkt) / static_cast<double>(standard))
                                 : Json(nullptr)}};
}

Json Table(const LayerCost& standard, const LayerCost& hkt) {
  return {Row("projections", standard.projections, hkt.projections),
          Row("downsample", standard.downsample, hkt.downsample),
          Row("scores", standard.scores, hkt.scores),
          Row("values", standard.values, hkt.values),
          Row("branch", standard.branch, hkt.branch),
          Row("layer", standard.total(), hkt.total())};
}

}  // namespace

LayerCost CostOf(const ModelConfig& m, int64_t T, bool causal) {
  const int64_t d = m.d_model, d_kv = d / m.heads * *m.kv_heads;
  const int64_t separable = m.kernel_size * d + d * d;  // a position
  const auto pairs = [causal](int64_t n) { return causal ? n * (n + 1) / 2 : n * n; };
  LayerCost cost;
  cost.projections = T * d * d_kv + T * d * d;
  cost.values = pairs(T) * d;
  for (int64_t l = 0; l < *m.levels; ++l) {
    const int64_t Tl = LevelLength(T, m.stride, l);
    cost.projections += Tl * d * d + (m.psd ? 0 : Tl * d * d_kv);
    cost.scores += pairs(Tl) * d;
    if (l > 0) cost.downsample += Tl * separable;
    if (*m.hybrid) cost.branch += Tl * separable;
  }
  return cost;
}

ModelConfig StandardAttention(const ModelConfig& resolved) {
  ModelConfig standard = resolved;
  standard.model = "mha";
  standard.levels = 1;
  standard.hybrid = false;
  standard.psd = false;
  return standard;
}

double ScoreFactor(int64_t levels, int64_t stride) {
  double sum = 0;
  for (int64_t l = 0; l < levels; ++l)
    sum += std::pow(static_cast<double>(stride), -2.0 * static_cast<double>(l));
  return sum;
}

double ScoreFactorLimit(int64_t stride) {
  const auto s = static_cast<double>(stride);
  return 1 / (1 - 1 / (s * s));
}

Json CostToJson(const ModelConfig& m, int64_t T) {
  const ModelConfig standard = StandardAttention(m);
  Json json;
  json["tokens"] = T;
  json["score_factor"] = ScoreFactor(*m.levels, m.stride);
  json["score_factor_limit"] = ScoreFactorLimit(m.stride);
  json["all_pairs"] = Table(CostOf(standard, T, false), CostOf(m, T, false));
  json["causal"] = Table(CostOf(standard, T, true), CostOf(m, T, true));
  json["parameters"] = Row("attention", AttentionParameters(standard), AttentionParameters(m));
  return json;
}

}  // namespace hkt::analysis
