#include "hkt/analysis/kernel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>

#include <algorithm>
#include <map>

#include "hkt/analysis/locality.h"
#include "hkt/analysis/spectrum.h"

namespace hkt::analysis {
namespace {

// Spectra of Gram matrices cost a QR factorisation of T rows each; their shares hardly vary between
// sequences.
constexpr int64_t kSpectralSequences = 16;

// A running mean that knows its extremes.
struct Figure {
  double sum = 0, low = 0, high = 0;
  int64_t count = 0;
  void Add(double x) {
    low = count ? std::min(low, x) : x;
    high = count ? std::max(high, x) : x;
    sum += x;
    ++count;
  }
  double mean() const { return sum / static_cast<double>(count); }
};

struct GramSums {
  Figure negative_share, negative_energy, least, bound, rank, chain, sum, tokens;
  int64_t psd = 0;
};

struct HeadLevel {
  ReducedForm form;
  Figure gram_share, gram_energy;
  std::map<int64_t, DistanceSums> profile;
};

class KernelSubject : public Subject {
 public:
  KernelSubject(const std::vector<Layer>& layers, const LevelMoments& moments)
      : layers_(layers), moments_(moments) {
    for (const Layer& layer : layers_) {
      auto& heads = parts_.emplace_back(static_cast<size_t>(layer.H));
      for (int64_t h = 0; h < layer.H; ++h) {
        for (const LevelWeights& level : layer.levels) {
          heads[static_cast<size_t>(h)].emplace_back().form =
              Reduce(level.query[h], level.key[h], layer.scale);
        }
      }
      grams_.emplace_back(static_cast<size_t>(layer.H));
    }
  }

  void Visit(const SequenceCapture& sequence, const std::vector<SequenceLevels>& levels) override {
    for (size_t i = 0; i < layers_.size(); ++i) {
      std::vector<at::Tensor> rows;
      for (const at::Tensor& x : levels[i].x) rows.push_back(Augmented(layers_[i], x));
      for (int64_t h = 0; h < layers_[i].H; ++h) {
        if (sequences_ < kSpectralSequences) AddSpectra(i, h, rows, sequence.length);
        AddProfiles(i, h, rows, sequence.length);
      }
    }
    ++sequences_;
  }

  Json Finish() override {
    Json json;
    json["sequences"] = sequences_;
    json["spectral_sequences"] = std::min(sequences_, kSpectralSequences);
    for (const char* key : {"levels", "concatenated", "gram", "distance"})
      json[key] = Json::array();
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (size_t h = 0; h < parts_[i].size(); ++h) {
        bool condition = true;  // every level of positive weight is PSD
        for (size_t l = 0; l < parts_[i][h].size(); ++l) {
          AddLevel(i, h, l, condition, json);
        }
        json["gram"].push_back(GramToJson(i, h, condition));
      }
      AddConcatenated(i, json["concatenated"]);
    }
    return json;
  }

 private:
  void AddSpectra(size_t i, int64_t head, const std::vector<at::Tensor>& rows, int64_t T) {
    const auto h = static_cast<size_t>(head);
    const at::Tensor weights = layers_[i].weights[head];
    std::vector<GramPart> parts;
    for (size_t l = 0; l < rows.size(); ++l) {
      const auto level = static_cast<int64_t>(l);
      parts.push_back(
          {rows[l], layers_[i].step(level), weights[level].item<double>(), parts_[i][h][l].form});
      const Inertia part = PartInertia(parts.back(), T);
      if (part.rank() == 0) continue;
      parts_[i][h][l].gram_share.Add(part.negative_share());
      parts_[i][h][l].gram_energy.Add(part.negative_energy);
    }
    const Inertia gram = GramInertia(parts, T);
    const RankBounds bounds = GramRankBounds(parts, T);
    GramSums& sums = grams_[i][h];
    if (gram.rank() > 0) {
      sums.negative_share.Add(gram.negative_share());
      sums.negative_energy.Add(gram.negative_energy);
    }
    sums.least.Add(gram.min);
    sums.bound.Add(GramDefectBound(parts, T));
    sums.rank.Add(static_cast<double>(gram.rank()));
    sums.chain.Add(static_cast<double>(bounds.chain));
    sums.sum.Add(static_cast<double>(bounds.sum));
    sums.tokens.Add(static_cast<double>(T));
    sums.psd += gram.psd();
  }

  void AddProfiles(size_t i, int64_t head, const std::vector<at::Tensor>& rows, int64_t T) {
    const auto distances = ProfileDistances(T);
    const Layer& layer = layers_[i];
    for (size_t l = 0; l < rows.size(); ++l) {
      const at::Tensor query = layer.levels[l].query[head], key = layer.levels[l].key[head];
      const int64_t step = layer.step(static_cast<int64_t>(l));
      HeadLevel& part = parts_[i][static_cast<size_t>(head)][l];
      const auto profile = DistanceProfile(rows[l], query, key, layer.scale, T, step, distances);
      for (size_t n = 0; n < distances.size(); ++n) part.profile[distances[n]].Add(profile[n]);
    }
  }

  void AddLevel(size_t i, size_t h, size_t l, bool& condition, Json& json) const {
    const Layer& layer = layers_[i];
    const auto head = static_cast<int64_t>(h), level = static_cast<int64_t>(l);
    const HeadLevel& part = parts_[i][h][l];
    const Inertia form = part.form.SymmetricInertia();
    const double weight = layer.weights[head][level].item<double>();
    if (weight > 0 && !form.psd()) condition = false;
    const at::Tensor sigma = AugmentedCovariance(layer, moments_[i][l].WithinCovariance());
    const Locality locality =
        LocalPreference(layer.levels[l].query[head], layer.levels[l].key[head], layer.scale, sigma);
    json["levels"].push_back({{"layer", i},
                              {"head", h},
                              {"level", l},
                              {"weight", weight},
                              {"positive", form.positive},
                              {"negative", form.negative},
                              {"zero", form.zero},
                              {"psd", form.psd()},
                              {"negative_share", form.negative_share()},
                              {"negative_energy", form.negative_energy},
                              {"min", form.min},
                              {"max", form.max},
                              {"trace", form.trace},
                              {"eigenvalues", form.nonzero},
                              {"rank", form.rank()},
                              {"rank_bound", std::min(layer.width(), 2 * layer.D)},
                              {"skew_rank", part.form.SkewRank()},
                              {"gram_negative_share", part.gram_share.mean()},
                              {"gram_negative_energy", part.gram_energy.mean()},
                              {"locality_excess", locality.excess},
                              {"locality_preference", locality.preference}});
    const double size = std::abs(locality.excess / locality.preference);
    for (const auto& [distance, sums] : part.profile) {
      json["distance"].push_back({{"layer", i},
                                  {"head", h},
                                  {"level", l},
                                  {"distance", distance},
                                  {"excess", sums.excess() / size},
                                  {"normalised", sums.normalised / sums.defined},
                                  {"defined", sums.defined / sums.pairs},
                                  {"same_cell", sums.same_cell / sums.pairs},
                                  {"pairs", sums.pairs}});
    }
  }

  Json GramToJson(size_t i, size_t h, bool condition) const {
    const GramSums& sums = grams_[i][h];
    return {{"layer", i},
            {"head", h},
            {"condition", condition},
            {"psd_sequences", sums.psd},
            {"negative_share", sums.negative_share.mean()},
            {"negative_energy", sums.negative_energy.mean()},
            {"min", sums.least.low},
            {"min_mean", sums.least.mean()},
            {"min_bound_mean", sums.bound.mean()},
            {"tokens_mean", sums.tokens.mean()},
            {"rank_mean", sums.rank.mean()},
            {"rank_bound_chain_mean", sums.chain.mean()},
            {"rank_bound_sum_mean", sums.sum.mean()}};
  }

  // The forms of all heads added up, as if they were one head of width H D.
  void AddConcatenated(size_t i, Json& rows) const {
    const Layer& layer = layers_[i];
    if (layer.H == 1) return;
    for (size_t l = 0; l < layer.levels.size(); ++l) {
      const auto all = [](const at::Tensor& heads) { return heads.transpose(0, 1).flatten(1); };
      const Inertia form = Reduce(all(layer.levels[l].query), all(layer.levels[l].key), layer.scale)
                               .SymmetricInertia();
      rows.push_back({{"layer", i},
                      {"level", l},
                      {"positive", form.positive},
                      {"negative", form.negative},
                      {"zero", form.zero},
                      {"negative_share", form.negative_share()},
                      {"negative_energy", form.negative_energy}});
    }
  }

  const std::vector<Layer>& layers_;
  const LevelMoments& moments_;
  std::vector<std::vector<std::vector<HeadLevel>>> parts_;  // [layer][head][level]
  std::vector<std::vector<GramSums>> grams_;                // [layer][head]
  int64_t sequences_ = 0;
};

}  // namespace

std::unique_ptr<Subject> MakeKernelSubject(const std::vector<Layer>& layers,
                                           const LevelMoments& moments) {
  return std::make_unique<KernelSubject>(layers, moments);
}

at::Tensor AugmentedCovariance(const Layer& layer, const at::Tensor& sigma) {
  return layer.bias ? at::constant_pad_nd(sigma, {0, 1, 0, 1}) : sigma;
}

}  // namespace hkt::analysis
