#include "hkt/analysis/pyramid_target.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <string>
#include <vector>

#include "hkt/analysis/capture.h"
#include "hkt/analysis/layer.h"
#include "hkt/analysis/least_squares.h"
#include "hkt/analysis/pair_scores.h"
#include "hkt/base/random.h"
#include "hkt/nn/hkt_attention.h"

namespace hkt::analysis {
namespace {

at::Tensor Normal(Random& random, at::IntArrayRef shape) {
  at::Tensor x = at::empty(shape, at::kDouble);
  double* data = x.mutable_data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) data[i] = random.Normal();
  return x;
}

// Weights N(0, 1/fan in), so that every level's rows are of order 1; biases N(0, 0.01), norms
// around 1.
Layer RandomLayer(const PyramidTargetOptions& o, Random& random) {
  ModelConfig config;
  config.d_model = o.d;
  config.heads = 1;
  config.kv_heads = 1;
  config.levels = o.levels;
  config.stride = o.stride;
  config.hybrid = false;
  const nn::HktAttention shape(nn::HktAttentionOptions{.d_model = o.d,
                                                       .heads = 1,
                                                       .kv_heads = 1,
                                                       .levels = o.levels,
                                                       .stride = o.stride,
                                                       .hybrid = false});
  train::NamedTensors parameters;
  for (const auto& item : shape->named_parameters()) {
    const at::Tensor& like = item.value();
    at::Tensor value = Normal(random, like.sizes());
    if (item.key().ends_with("norm.weight")) {
      value = 1 + value / 10;
    } else if (like.dim() == 1) {
      value = value / 10;
    } else {
      value = value / std::sqrt(static_cast<double>(like.size(-1)));
    }
    parameters.emplace_back(item.key(), value);
  }
  return ReadLayer(parameters, "", config);
}

}  // namespace

HeadTruncations MeasurePyramidTarget(const PyramidTargetOptions& o) {
  const at::NoGradGuard no_grad;
  Random random({o.seed, 0x707972616d6964u});
  const Layer layer = RandomLayer(o, random);
  const PairDraw all = AllPairs(o.tokens, /*causal=*/true);
  RowStack stack(4 * o.levels);
  for (int64_t b = 0; b < o.sequences; ++b) {
    std::vector<at::Tensor> rows = {Normal(random, {o.d})};
    while (static_cast<int64_t>(rows.size()) < o.tokens)
      rows.push_back(o.correlation * rows.back() + Normal(random, {o.d}));
    const ScoreColumns columns =
        PairScores(layer, Pyramid(layer, at::stack(rows))).Uniform(all.i, all.j);
    stack.Add(at::cat({columns.decimated, columns.undecimated}, 2)[0]);
  }
  const at::Tensor means = stack.Means();
  std::vector<double> a;  // of terms a_l St^(l) of size rho^l
  for (int64_t l = 0; l < o.levels; ++l) {
    const at::Tensor level = means.select(1, 2 * o.levels + l) + means.select(1, 3 * o.levels + l);
    a.push_back(std::pow(o.rho, l) / level.square().sum().sqrt().item<double>());
  }
  const at::Tensor weights = at::tensor(a, at::kDouble);
  const double gain = weights.sum().item<double>();
  return DecomposeHead(means, weights / gain, gain);
}

nlohmann::ordered_json ToJson(const HeadTruncations& head) {
  nlohmann::ordered_json json = {
      {"target", head.target}, {"terms", head.terms}, {"decay_rate", head.decay_rate}};
  json["rows"] = nlohmann::ordered_json::array();
  constexpr double kNothing = 1e-18;  // of the target: an error below is rounding, its parts too
  for (const Truncation& t : head.truncations) {
    const bool lost = t.terms.total > kNothing * head.target;
    json["rows"].push_back({{"levels", t.levels},
                            {"hierarchical", t.terms.hierarchical},
                            {"quantisation", t.terms.quantisation},
                            {"optimisation", t.terms.optimisation},
                            {"total", t.terms.total},
                            {"gap", lost ? nlohmann::ordered_json(t.terms.gap()) : nullptr},
                            {"tail_bound", t.tail_bound}});
  }
  return json;
}

}  // namespace hkt::analysis
