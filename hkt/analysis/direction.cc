#include "hkt/analysis/direction.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include <cmath>
#include <limits>
#include <utility>

#include "hkt/analysis/kernel.h"
#include "hkt/base/random.h"

namespace hkt::analysis {
namespace {

constexpr int64_t kPairs = 4096;                     // a sequence
constexpr uint64_t kPairStream = 0x64697265637469u;  // its own among the seeded streams
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double Item(const at::Tensor& x) { return x.item<double>(); }

// tr(C C) / tr(A B) for the products of M = W_Q W_K^T, seen through sigma.
double SquareOverEnergy(const at::Tensor& query, const at::Tensor& key, const at::Tensor& sigma) {
  const at::Tensor sq = sigma.defined() ? at::matmul(sigma, query) : query;
  const at::Tensor sk = sigma.defined() ? at::matmul(sigma, key) : key;
  const at::Tensor c = at::matmul(key.t(), sq), a = at::matmul(query.t(), sq),
                   b = at::matmul(key.t(), sk);
  return Item((c * c.t()).sum()) / Item((a * b).sum());
}

// Pairs i != j of T >= 2 tokens.
std::pair<at::Tensor, at::Tensor> DrawDistinctPairs(int64_t T, uint64_t seed) {
  Random random({kPairStream, seed});
  at::Tensor i = at::empty({kPairs}, at::kLong), j = at::empty({kPairs}, at::kLong);
  auto *first = i.mutable_data_ptr<int64_t>(), *second = j.mutable_data_ptr<int64_t>();
  for (int64_t n = 0; n < kPairs; ++n) {
    first[n] = random.Between(0, T - 1);
    second[n] = random.Between(0, T - 2);
    second[n] += second[n] >= first[n];
  }
  return {i, j};
}

// Sums over pairs of ((S_ij + S_ji)/2)^2 and ((S_ij - S_ji)/2)^2, a value a head.
struct PairSums {
  at::Tensor reciprocal, directional;
  void Add(const at::Tensor& forth, const at::Tensor& back) {  // [H, pairs]
    const at::Tensor r = ((forth + back) / 2).square().sum(1),
                     d = ((forth - back) / 2).square().sum(1);
    reciprocal = reciprocal.defined() ? reciprocal + r : r;
    directional = directional.defined() ? directional + d : d;
  }
  double Share(int64_t head) const {
    if (!reciprocal.defined()) return kNaN;
    const double r = Item(reciprocal[head]), d = Item(directional[head]);
    return d / (r + d);
  }
};

class DirectionSubject : public Subject {
 public:
  DirectionSubject(const std::vector<Layer>& layers, const LevelMoments& moments)
      : layers_(layers), moments_(moments), levels_(layers.size()), fused_(layers.size()) {
    for (size_t i = 0; i < layers.size(); ++i) levels_[i].resize(layers[i].levels.size());
  }

  void Visit(const SequenceCapture& sequence, const std::vector<SequenceLevels>& levels) override {
    const int64_t T = sequence.length;
    if (T < 2) return;
    ++sequences_;
    const auto [i, j] = DrawDistinctPairs(T, static_cast<uint64_t>(sequence.index));
    for (size_t n = 0; n < layers_.size(); ++n) {
      const Layer& layer = layers_[n];
      at::Tensor forth, back;  // of the fused score
      for (int64_t l = 0; l < layer.L; ++l) {
        const auto at_level = static_cast<size_t>(l);
        const Projections p = Project(layer, l, levels[n].x[at_level]);  // [H, T_l, D]
        const at::Tensor ci = i.floor_divide(layer.step(l)), cj = j.floor_divide(layer.step(l));
        const auto score = [&](const at::Tensor& from, const at::Tensor& to) {
          return (p.query.index_select(1, from) * p.key.index_select(1, to)).sum(2) * layer.scale;
        };
        const at::Tensor s_ij = score(ci, cj), s_ji = score(cj, ci);
        levels_[n][at_level].Add(s_ij, s_ji);
        const at::Tensor weight = layer.weights.select(1, l).unsqueeze(1);
        forth = l == 0 ? s_ij * weight : forth + s_ij * weight;
        back = l == 0 ? s_ji * weight : back + s_ji * weight;
      }
      fused_[n].Add(forth, back);
    }
  }

  Json Finish() override {
    Json json;
    json["sequences"] = sequences_;
    json["pairs_per_sequence"] = kPairs;
    for (const char* key : {"levels", "fused", "trend"}) json[key] = Json::array();
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (int64_t h = 0; h < layers_[i].H; ++h) AddHead(i, h, json);
    }
    return json;
  }

 private:
  void AddHead(size_t i, int64_t head, Json& json) const {
    const Layer& layer = layers_[i];
    std::vector<double> alphas, scores, on_data;
    for (size_t l = 0; l < layer.levels.size(); ++l) {
      const at::Tensor query = layer.levels[l].query[head], key = layer.levels[l].key[head];
      const Antisymmetry split = AntisymmetryOf(query, key);
      const double data =
          DataAntisymmetry(query, key, AugmentedCovariance(layer, moments_[i][l].Covariance()));
      // With W_K = W_Q every M is symmetric: there is nothing that chance could have done.
      const double z = layer.psd ? kNaN : split.z;
      json["levels"].push_back({{"layer", i},
                                {"head", head},
                                {"level", l},
                                {"alpha", split.alpha},
                                {"expected", layer.psd ? kNaN : split.expected},
                                {"deviation", layer.psd ? kNaN : split.deviation},
                                {"z", z},
                                {"alpha_data", data},
                                {"directional_share", levels_[i][l].Share(head)}});
      alphas.push_back(split.alpha);
      scores.push_back(z);
      on_data.push_back(data);
    }
    json["fused"].push_back(
        {{"layer", i}, {"head", head}, {"directional_share", fused_[i].Share(head)}});
    bool rising = alphas.size() > 1;
    for (size_t l = 1; l < alphas.size(); ++l) rising = rising && alphas[l] > alphas[l - 1];
    json["trend"].push_back({{"layer", i},
                             {"head", head},
                             {"slope_alpha", Slope(alphas)},
                             {"slope_z", Slope(scores)},
                             {"slope_alpha_data", Slope(on_data)},
                             {"rising", rising}});
  }

  const std::vector<Layer>& layers_;
  const LevelMoments& moments_;
  std::vector<std::vector<PairSums>> levels_;  // [layer][level]
  std::vector<PairSums> fused_;                // [layer]
  int64_t sequences_ = 0;
};

}  // namespace

Antisymmetry AntisymmetryOf(const at::Tensor& query, const at::Tensor& key) {
  Antisymmetry result;
  const auto d = static_cast<double>(query.size(0));
  result.alpha = (1 - SquareOverEnergy(query, key, {})) / 2;
  result.expected = (d - 1) / (2 * d);
  // sigma^2 of M are the eigenvalues of A B.
  const at::Tensor ab = at::matmul(at::matmul(query.t(), query), at::matmul(key.t(), key));
  const double energy = Item(ab.diagonal().sum());
  const double r = Item((ab * ab.t()).sum()) / (energy * energy);
  const double variance = (3 * (d + 1 - 2 * r) / ((d - 1) * d * (d + 2)) - 1 / (d * d)) / 4;
  result.deviation = d > 1 ? std::sqrt(variance) : kNaN;
  result.z = (result.alpha - result.expected) / result.deviation;
  return result;
}

double DataAntisymmetry(const at::Tensor& query, const at::Tensor& key, const at::Tensor& sigma) {
  return (1 - SquareOverEnergy(query, key, sigma)) / 2;
}

double Slope(const std::vector<double>& y) {
  const auto n = static_cast<double>(y.size());
  if (n < 2) return kNaN;
  double mean = 0, product = 0, square = 0;
  for (double value : y) mean += value / n;
  for (size_t i = 0; i < y.size(); ++i) {
    const double x = static_cast<double>(i) - (n - 1) / 2;
    product += x * (y[i] - mean);
    square += x * x;
  }
  return product / square;
}

std::unique_ptr<Subject> MakeDirectionSubject(const std::vector<Layer>& layers,
                                              const LevelMoments& moments) {
  return std::make_unique<DirectionSubject>(layers, moments);
}

}  // namespace hkt::analysis
