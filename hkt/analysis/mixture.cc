#include "hkt/analysis/mixture.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/special_entr.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace hkt::analysis {
namespace {

constexpr int64_t kSequences = 16;  // T^2 work each

double Item(const at::Tensor& x) { return x.item<double>(); }

class MixtureSubject : public Subject {
 public:
  explicit MixtureSubject(const std::vector<Layer>& layers)
      : layers_(layers), sums_(layers.size()) {}

  void Visit(const SequenceCapture&, const std::vector<SequenceLevels>& levels) override {
    if (sequences_ == kSequences) return;
    ++sequences_;
    for (size_t i = 0; i < layers_.size(); ++i) sums_[i].Add(MixtureOf(layers_[i], levels[i].x));
  }

  Json Finish() override {
    Json json;
    json["sequences"] = sequences_;
    json["levels"] = json["heads"] = Json::array();
    for (size_t i = 0; i < layers_.size(); ++i) {
      const MixtureSums& sums = sums_[i];
      const Layer& layer = layers_[i];
      for (int64_t h = 0; h < layer.H; ++h) {
        for (int64_t l = 0; l < layer.L; ++l) {
          json["levels"].push_back(
              {{"layer", i},
               {"head", h},
               {"level", l},
               {"lambda", Item(layer.lambda[h][l])},
               {"beta", layer.hybrid ? Json(Item(layer.beta[h][l])) : Json(nullptr)},
               {"weight", Item(layer.weights[h][l])},
               {"variance_share", Item(sums.covariance[h][l]) / Item(sums.variance[h])},
               {"variance", Item(sums.level_variance[h][l]) / sums.pairs},
               {"distance_alone", Item(sums.level_distance[h][l]) / sums.rows}});
        }
        json["heads"].push_back({{"layer", i},
                                 {"head", h},
                                 {"attention_share", Item((layer.lambda[h] * layer.beta[h]).sum())},
                                 {"variance", Item(sums.variance[h]) / sums.pairs},
                                 {"entropy", Item(sums.entropy[h]) / sums.rows},
                                 {"relative_entropy", Item(sums.entropy[h]) / sums.uniform_entropy},
                                 {"distance", Item(sums.distance[h]) / sums.rows},
                                 {"uniform_distance", sums.uniform_distance / sums.rows}});
      }
    }
    return json;
  }

 private:
  const std::vector<Layer>& layers_;
  std::vector<MixtureSums> sums_;
  int64_t sequences_ = 0;
};

}  // namespace

void MixtureSums::Add(const MixtureSums& other) {
  if (rows == 0) {
    *this = other;
    return;
  }
  rows += other.rows;
  pairs += other.pairs;
  uniform_entropy += other.uniform_entropy;
  uniform_distance += other.uniform_distance;
  entropy = entropy + other.entropy;
  distance = distance + other.distance;
  level_distance = level_distance + other.level_distance;
  covariance = covariance + other.covariance;
  level_variance = level_variance + other.level_variance;
  variance = variance + other.variance;
}

MixtureSums MixtureOf(const Layer& layer, const std::vector<at::Tensor>& levels, int64_t chunk) {
  const int64_t T = levels.at(0).size(0), H = layer.H, L = layer.L;
  const at::Tensor tokens = at::arange(T, at::kLong);
  std::vector<Projections> projections;
  std::vector<at::Tensor> cells;
  for (int64_t l = 0; l < L; ++l) {
    projections.push_back(Project(layer, l, levels[static_cast<size_t>(l)]));
    cells.push_back(tokens.floor_divide(layer.step(l)));
  }
  MixtureSums sums;
  const auto options = layer.lambda.options();
  for (at::Tensor* each : {&sums.entropy, &sums.distance, &sums.variance})
    *each = at::zeros({H}, options);
  for (at::Tensor* each : {&sums.level_distance, &sums.covariance, &sums.level_variance})
    *each = at::zeros({H, L}, options);

  for (int64_t begin = 0; begin < T; begin += chunk) {
    const int64_t end = std::min(T, begin + chunk);
    const at::Tensor rows = tokens.slice(0, begin, end).unsqueeze(1), columns = tokens.unsqueeze(0);
    const at::Tensor valid = layer.causal ? columns <= rows : at::ones({end - begin, T}, at::kBool);
    const at::Tensor count = valid.sum(1, true).to(at::kDouble);  // keys of each row
    const at::Tensor distance = (rows - columns).abs().to(at::kDouble);
    const auto attention = [&](const at::Tensor& scores) {
      return at::softmax(
          scores.masked_fill(valid.logical_not(), -std::numeric_limits<double>::infinity()), 2);
    };
    const auto centred = [&](const at::Tensor& scores) {
      const at::Tensor inside = at::where(valid, scores, 0.0);
      return at::where(valid, inside - inside.sum(2, true) / count, 0.0);
    };
    std::vector<at::Tensor> terms;
    at::Tensor fused;
    for (int64_t l = 0; l < L; ++l) {
      const auto n = static_cast<size_t>(l);
      const at::Tensor queries =
          projections[n].query.index_select(1, cells[n].slice(0, begin, end)) *
          (layer.scale * layer.score_gain);
      const at::Tensor alone =
          at::matmul(queries, projections[n].key.transpose(1, 2)).index_select(2, cells[n]);
      sums.level_distance.select(1, l).add_((attention(alone) * distance).sum({1, 2}));
      terms.push_back(alone * layer.weights.select(1, l).unsqueeze(1).unsqueeze(2));
      fused = l == 0 ? terms.back() : fused + terms.back();
    }
    const at::Tensor p = attention(fused);
    sums.entropy.add_(at::special_entr(p).sum({1, 2}));
    sums.distance.add_((p * distance).sum({1, 2}));
    const at::Tensor whole = centred(fused);
    sums.variance.add_(whole.square().sum({1, 2}));
    for (int64_t l = 0; l < L; ++l) {
      const at::Tensor part = centred(terms[static_cast<size_t>(l)]);
      sums.covariance.select(1, l).add_((part * whole).sum({1, 2}));
      sums.level_variance.select(1, l).add_(part.square().sum({1, 2}));
    }
    sums.rows += static_cast<double>(end - begin);
    sums.pairs += Item(count.sum());
    sums.uniform_entropy += Item(count.log().sum());
    sums.uniform_distance += Item((at::where(valid, distance, 0.0) / count).sum());
  }
  return sums;
}

std::unique_ptr<Subject> MakeMixtureSubject(const std::vector<Layer>& layers) {
  return std::make_unique<MixtureSubject>(layers);
}

}  // namespace hkt::analysis
