#include "hkt/analysis/cost.h"

#include <cmath>

#include "hkt/nn/cost.h"

namespace hkt::analysis {
namespace {

nn::HktAttentionOptions Options(const ModelConfig& m, bool causal) {
  return {.d_model = m.d_model,
          .heads = m.heads,
          .kv_heads = *m.kv_heads,
          .levels = *m.levels,
          .stride = m.stride,
          .kernel_size = m.kernel_size,
          .hybrid = *m.hybrid,
          .psd = m.psd,
          .causal = causal,
          .bias = m.bias};
}

int64_t AttentionParameters(const ModelConfig& m) {
  return nn::ParameterCount(Options(m, !m.bidirectional));
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
  const nn::AttentionCost cost = nn::AttentionMultiplyAdds(Options(m, causal), T);
  // Whole numbers, exact in double up to 2^53.
  return {static_cast<int64_t>(cost.projections), static_cast<int64_t>(cost.downsample),
          static_cast<int64_t>(cost.scores), static_cast<int64_t>(cost.values),
          static_cast<int64_t>(cost.branches)};
}

ModelConfig StandardAttention(const ModelConfig& resolved) {
  ModelConfig standard = resolved;
  standard.model = "mha";
  standard.levels = 1;
  standard.hybrid = false;
  standard.psd = false;
  standard.fusion = "learned";
  standard.downsample = "conv";
  standard.undecimated = false;
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
