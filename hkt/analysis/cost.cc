#include "hkt/analysis/cost.h"

#include <cmath>

namespace hkt::analysis {
namespace {

int64_t AttentionParameters(const ModelConfig& m) {
  return nn::ParameterCount(nn::AttentionOptions(m));
}

// Counts are whole numbers, exact in double up to 2^53.
Json Row(const char* part, double standard, double hkt) {
  return {{"part", part},
          {"standard", static_cast<int64_t>(standard)},
          {"this", static_cast<int64_t>(hkt)},
          {"ratio", standard > 0 ? Json(hkt / standard) : Json(nullptr)}};
}

Json Table(const nn::AttentionCost& standard, const nn::AttentionCost& hkt) {
  return {Row("projections", standard.projections, hkt.projections),
          Row("downsample", standard.downsample, hkt.downsample),
          Row("scores", standard.scores, hkt.scores),
          Row("values", standard.values, hkt.values),
          Row("branch", standard.branches, hkt.branches),
          Row("layer", standard.total(), hkt.total())};
}

}  // namespace

nn::AttentionCost CostOf(const ModelConfig& m, int64_t T, bool causal) {
  nn::HktAttentionOptions options = nn::AttentionOptions(m);
  options.causal = causal;
  return nn::AttentionMultiplyAdds(options, T);
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
  json["parameters"] = Row("attention", static_cast<double>(AttentionParameters(standard)),
                           static_cast<double>(AttentionParameters(m)));
  return json;
}

}  // namespace hkt::analysis
