#include "hkt/analysis/kurtosis_subject.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "hkt/analysis/correction.h"
#include "hkt/analysis/kurtosis.h"
#include "hkt/analysis/pair_scores.h"
#include "hkt/analysis/score_kurtosis.h"

namespace hkt::analysis {
namespace {

// Kurtosis of one distribution of scores over sequences.
struct ScoreSums {
  std::vector<double> each;  // of every sequence where the scores vary
  PooledKurtosis pooled;
  double centred_square = 0;  // of the row-centred scores, over all pairs

  void Add(const at::Tensor& scores) {
    const double kurtosis = Kurtosis(scores);
    if (std::isfinite(kurtosis)) each.push_back(kurtosis);
    pooled.Add(scores);
  }
  double Mean() const {
    double sum = 0;
    for (double value : each) sum += value;
    return sum / static_cast<double>(each.size());
  }
  double Median() const {
    if (each.empty()) return std::nan("");
    std::vector<double> sorted = each;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::nth_element(sorted.begin(), middle, sorted.end());
    return *middle;
  }
};

// One level of one layer.
struct LevelState {
  std::vector<at::Tensor> z;      // [T, d] of every kept sequence
  std::vector<ScoreSums> scores;  // of every head
};

struct LayerState {
  Layer layer;
  std::vector<LevelState> levels;
  std::vector<ScoreSums> fused;  // of every head
};

// Rows of z at the level's own positions.
std::vector<at::Tensor> Decimated(const std::vector<at::Tensor>& z, int64_t step) {
  std::vector<at::Tensor> x;
  for (const at::Tensor& rows : z) x.push_back(rows.slice(0, 0, std::nullopt, step));
  return x;
}

// E |w|^4 of cells' rows under a weight a token, w the coordinates of second moment I, and the same
// with the other weight: the two sides of a pair are not met alike (row i of a causal layer has i +
// 1 keys). Their geometric mean is the kappa of bound (b).
double PairKappa(const std::vector<at::Tensor>& z, int64_t step, const Spread& spread,
                 bool causal) {
  double left = 0, right = 0, sequences = 0;
  for (const at::Tensor& rows : z) {
    const int64_t T = rows.size(0);
    const at::Tensor token = at::arange(T, at::kLong);
    const at::Tensor w = spread.Whiten(rows.slice(0, 0, std::nullopt, step));
    const at::Tensor fourth = (w * w).sum(1).square().index_select(0, token.floor_divide(step));
    const at::Tensor ahead = (token + 1).to(at::kDouble), ones = at::ones({T}, at::kDouble);
    const at::Tensor as_query = causal ? ahead : ones, as_key = causal ? ahead.flip(0) : ones;
    left += ((fourth * as_query).sum() / as_query.sum()).item<double>();
    right += ((fourth * as_key).sum() / as_key.sum()).item<double>();
    sequences += 1;
  }
  return std::sqrt(left * right) / sequences;
}

double MeanSameCell(const std::vector<at::Tensor>& z, int64_t step, bool causal) {
  double share = 0;
  for (const at::Tensor& rows : z) share += SameCellShare(rows.size(0), step, causal);
  return share / static_cast<double>(z.size());
}

class KurtosisSubject final : public Subject {
 public:
  KurtosisSubject(const std::vector<Layer>& layers, int64_t pairs, uint64_t seed,
                  int64_t keep_bytes)
      : pairs_(pairs), keep_bytes_(keep_bytes), seed_(seed) {
    for (const Layer& layer : layers) {
      const auto H = static_cast<size_t>(layer.H);
      layers_.push_back(
          {layer, std::vector<LevelState>(layer.levels.size()), std::vector<ScoreSums>(H)});
      for (LevelState& level : layers_.back().levels) level.scores.resize(H);
    }
  }

  void Visit(const SequenceCapture& sequence, const std::vector<SequenceLevels>& levels) override {
    int64_t bytes = 0;
    for (const SequenceLevels& of_layer : levels) {
      for (const at::Tensor& z : of_layer.z)
        bytes += z.numel() * static_cast<int64_t>(sizeof(double));
    }
    const bool keep = kept_bytes_ + bytes <= keep_bytes_;
    if (keep) kept_bytes_ += bytes;
    for (size_t i = 0; i < layers_.size(); ++i) {
      LayerState& state = layers_[i];
      const Layer& layer = state.layer;
      const PairScores scores(layer, levels[i]);
      const PairDraw draw = DrawPairs(scores.T(), pairs_, layer.causal,
                                      seed_ * 9176 + static_cast<uint64_t>(sequence.index));
      const at::Tensor raw = scores.Raw(draw.i, draw.j);
      const at::Tensor columns = scores.Uniform(draw.i, draw.j).decimated;
      for (int64_t h = 0; h < layer.H; ++h) {
        const auto head = static_cast<size_t>(h);
        state.fused[head].Add((raw[h] * layer.weights[h]).sum(1) * layer.score_gain);
        for (int64_t l = 0; l < layer.L; ++l) {
          ScoreSums& sums = state.levels[static_cast<size_t>(l)].scores[head];
          sums.Add(raw[h].select(1, l));
          const at::Tensor both = columns[h].select(1, l) + columns[h].select(1, layer.L + l);
          if (keep) sums.centred_square += both.square().mean().item<double>();
        }
      }
      for (size_t l = 0; keep && l < state.levels.size(); ++l)
        state.levels[l].z.push_back(levels[i].z[l]);
    }
    ++sequences_;
  }

  Json Finish() override {
    Json levels = Json::array(), forms = Json::array(), scores = Json::array();
    for (size_t i = 0; i < layers_.size(); ++i) {
      LayerState& state = layers_[i];
      for (int64_t l = 0; l < state.layer.L; ++l) FinishLevel(i, l, levels, forms, scores);
      for (size_t h = 0; h < state.fused.size(); ++h) {
        scores.push_back(ScoreRow(i, h, nullptr, state.fused[h]));
      }
    }
    return {{"pairs", pairs_},
            {"sequences", sequences_},
            {"levels", levels},
            {"forms", forms},
            {"scores", scores}};
  }

 private:
  static Json ScoreRow(size_t layer, size_t head, const Json& level, const ScoreSums& sums) {
    return {{"layer", layer},          {"head", head},
            {"level", level},          {"kurtosis", sums.Mean()},
            {"median", sums.Median()}, {"pooled", sums.pooled.value()}};
  }

  void FinishLevel(size_t i, int64_t l, Json& levels, Json& forms, Json& scores);

  int64_t pairs_, keep_bytes_;
  uint64_t seed_;
  int64_t sequences_ = 0, kept_bytes_ = 0;
  std::vector<LayerState> layers_;
};

void KurtosisSubject::FinishLevel(size_t i, int64_t l, Json& levels, Json& forms, Json& scores) {
  LayerState& state = layers_[i];
  const Layer& layer = state.layer;
  LevelState& level = state.levels[static_cast<size_t>(l)];
  const int64_t step = layer.step(l);
  const std::vector<at::Tensor> x = Decimated(level.z, step);
  const Mardia mardia = MeasureMardia(x, seed_);
  const Spread centred = MeasureSpread(x), about0 = MeasureSpread(x, /*centred=*/false);
  const double pair_kappa = PairKappa(level.z, step, about0, layer.causal);
  const double same_cell = MeanSameCell(level.z, step, layer.causal);
  levels.push_back({{"layer", i},
                    {"level", l},
                    {"sequences", mardia.sequences},
                    {"rows", mardia.rows},
                    {"width", mardia.width},
                    {"rank", mardia.rank},
                    {"kappa", mardia.kappa},
                    {"gaussian", mardia.gaussian},
                    {"gamma", mardia.gamma},
                    {"gaussian_se", mardia.gaussian_se},
                    {"bootstrap_se", mardia.bootstrap_se},
                    {"ridge_factor", mardia.ridge_factor},
                    {"saturated", mardia.saturated},
                    {"too_few", mardia.too_few},
                    {"same_cell", same_cell}});
  for (int64_t h = 0; h < layer.H; ++h) {
    const ScoreSums& sums = level.scores[static_cast<size_t>(h)];
    // Centred rows have no part along the column of ones that carries biases.
    const at::Tensor M = ScoreForm(layer, l, h).narrow(0, 0, layer.d).narrow(1, 0, layer.d);
    const double gaussian = GaussianSecondMoment(M, centred.covariance);
    const double independent = IndependentSecondMoment(M, centred.covariance, centred.covariance);
    double square = 0;
    for (const at::Tensor& rows : x) {
      const at::Tensor y = rows - centred.mean;
      square += (at::mm(y, M) * y).sum(1).square().sum().item<double>();
    }
    square /= static_cast<double>(centred.rows);
    const at::Tensor symmetric = (M + M.t()) / 2;
    const double same_norm = OperatorNorm(symmetric, centred.covariance, centred.covariance);
    Json form = {{"layer", i},
                 {"head", h},
                 {"level", l},
                 {"gaussian_second_moment", gaussian},
                 {"same_cell_second_moment", square},
                 {"eta", square / gaussian - 1},
                 {"gamma", mardia.gamma},
                 {"same_cell_bound", mardia.kappa * same_norm * same_norm},
                 {"second_moment", sums.centred_square / static_cast<double>(mardia.sequences)},
                 {"second_moment_predicted",
                  LevelSecondMoment(same_cell, mardia.gamma, gaussian, independent)}};
    form["second_moment_bound"] = nullptr;
    if (!layer.bias) {
      const double norm = OperatorNorm(M, about0.covariance, about0.covariance);
      form["second_moment_bound"] = pair_kappa * norm * norm;
    }
    forms.push_back(std::move(form));
    const double rank = EffectiveRank(M, centred.covariance, centred.covariance);
    Json row = ScoreRow(i, static_cast<size_t>(h), l, sums);
    row["effective_rank"] = rank;
    row["independent_elliptical"] = EllipticalScoreKurtosis(mardia.gamma, mardia.gamma, rank);
    row["random_weights"] = RandomWeightsScoreKurtosis(layer.D);
    scores.push_back(std::move(row));
  }
}

}  // namespace

std::unique_ptr<Subject> MakeKurtosisSubject(const std::vector<Layer>& layers, int64_t pairs,
                                             uint64_t seed, int64_t keep_bytes) {
  return std::make_unique<KurtosisSubject>(layers, pairs, seed, keep_bytes);
}

}  // namespace hkt::analysis
