#include "hkt/analysis/approximation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "hkt/analysis/attention_pairs.h"
#include "hkt/analysis/least_squares.h"
#include "hkt/analysis/pair_scores.h"
#include "hkt/analysis/quantisation.h"
#include "hkt/analysis/truncation.h"

namespace hkt::analysis {
namespace {

constexpr double kIdentityTolerance = 1e-9;  // relative, in double (docs/theory.md, 3.1)
constexpr double kOrderTolerance = 1e-9;     // roundings of two sides that may be equal
constexpr double kNothing = 1e-18;  // of the target: an error below is rounding, its parts too

at::Tensor AllColumns(const ScoreColumns& columns) {
  return at::cat({columns.decimated, columns.undecimated}, -1);
}

// Mean over rows of what attention differs by, for one number of levels.
struct AttentionSums {
  double rows = 0, kl = 0, range_bound = 0, variance_bound = 0, l1 = 0, l1_bound = 0;
  int64_t violations = 0;  // rows on which a bound of 3.7 does not hold

  // A sequence counts by its draws, as in the totals: each of its rows has the same number of them.
  void Add(const AttentionPairs::Rows& r, int64_t draws) {
    const auto weight = static_cast<double>(draws);
    rows += weight * static_cast<double>(r.kl.size(0));
    kl += weight * r.kl.sum().item<double>();
    range_bound += weight * r.range_bound.sum().item<double>();
    variance_bound += weight * r.variance_bound.sum().item<double>();
    l1 += weight * r.l1.sum().item<double>();
    l1_bound += weight * r.l1_bound.sum().item<double>();
    const auto above = [](const at::Tensor& left, const at::Tensor& right) {
      return (left <= right * (1 + kOrderTolerance) + 1e-12).logical_not().sum().item<int64_t>();
    };
    violations +=
        above(r.kl, r.range_bound) + above(r.kl, r.variance_bound) + above(r.l1, r.l1_bound);
  }
  Json ToJson(double total) const {
    return {{"kl", kl / rows},
            {"half_total", total / 2},
            {"kl_range_bound", range_bound / rows},
            {"kl_variance_bound", variance_bound / rows},
            {"l1", l1 / rows},
            {"l1_bound", l1_bound / rows},
            {"violations", violations}};
  }
};

// One layer's pyramid: second moments of every level at tokens and at their cells' first tokens.
struct LevelSums {
  double rows = 0;
  CellMoments moments;  // about 0
  at::Tensor full_sum, cell_sum;
  FirstSampleCost first;

  void Add(const at::Tensor& z, int64_t step) {
    const CellMoments sum = SumCellMoments(z, step, at::zeros({z.size(1)}, z.options()));
    const at::Tensor cell = FirstOfCell(z, step).sum(0);
    const FirstSampleCost cost = MeasureFirstSample(z, step);
    if (rows == 0) {
      moments = sum;
      full_sum = z.sum(0);
      cell_sum = cell;
    } else {
      moments = {moments.full + sum.full, moments.cell + sum.cell, moments.cross + sum.cross};
      full_sum = full_sum + z.sum(0);
      cell_sum = cell_sum + cell;
    }
    rows += static_cast<double>(z.size(0));
    first.first += cost.first;
    first.mean += cost.mean;
    first.offset += cost.offset;
  }
  CellMoments About0() const {
    return {moments.full / rows, moments.cell / rows, moments.cross / rows};
  }
  CellMoments Centred() const {
    const at::Tensor mean = full_sum / rows, cell = cell_sum / rows;
    const CellMoments m = About0();
    return {m.full - at::outer(mean, mean), m.cell - at::outer(cell, cell),
            m.cross - at::outer(mean, cell)};
  }
};

struct HeadState {
  explicit HeadState(int64_t L) : held_out(4 * L), attention(static_cast<size_t>(L)) {
    for (int quarter = 0; quarter < 3; ++quarter) training.emplace_back(4 * L);
  }
  RowStack held_out;
  std::vector<RowStack> training;  // of the first quarter, the second, and the other half
  std::vector<AttentionSums> attention;
};

struct LayerState {
  explicit LayerState(const Layer& l) : layer(l), levels(l.levels.size()) {
    for (int64_t h = 0; h < l.H; ++h) heads.emplace_back(l.L);
  }
  Layer layer;
  std::vector<HeadState> heads;
  std::vector<LevelSums> levels;
};

class Approximation final : public ApproximationSubject {
 public:
  Approximation(const std::vector<Layer>& layers, const ApproximationOptions& options)
      : options_(options), layers_(layers.begin(), layers.end()) {}

  void Visit(const SequenceCapture& sequence, const std::vector<SequenceLevels>& levels) override {
    for (size_t i = 0; i < layers_.size(); ++i) {
      LayerState& state = layers_[i];
      AddColumns(
          state, levels[i], Seed(sequence.index, i),
          [](HeadState& head) -> RowStack& { return head.held_out; }, /*held_out=*/true);
      for (size_t l = 0; l < state.levels.size(); ++l)
        state.levels[l].Add(levels[i].z[l], state.layer.step(static_cast<int64_t>(l)));
    }
    ++sequences_;
  }

  void VisitTraining(const SequenceCapture& sequence,
                     const std::vector<SequenceLevels>& levels) override {
    const int64_t n = options_.training_sequences;
    const size_t part = training_ < n / 4 ? 0 : training_ < n / 2 ? 1 : 2;
    for (size_t i = 0; i < layers_.size(); ++i) {
      AddColumns(
          layers_[i], levels[i], Seed(sequence.index, i) + 1,
          [&](HeadState& head) -> RowStack& { return head.training[part]; }, /*held_out=*/false);
    }
    ++training_;
  }

  Json Finish() override;

 private:
  uint64_t Seed(int64_t index, size_t layer) const {
    return options_.seed * 1000003 + static_cast<uint64_t>(index) * 64 + 2 * layer;
  }

  template <class Stack>
  void AddColumns(LayerState& state, const SequenceLevels& levels, uint64_t seed,
                  const Stack& stack, bool held_out) {
    const PairScores scores(state.layer, levels);
    if (options_.weights == PairWeights::kUniform) {
      const PairDraw draw = DrawPairs(scores.T(), options_.pairs, state.layer.causal, seed);
      const at::Tensor columns = AllColumns(scores.Uniform(draw.i, draw.j));
      for (size_t h = 0; h < state.heads.size(); ++h)
        stack(state.heads[h]).Add(columns[static_cast<int64_t>(h)]);
      return;
    }
    for (size_t h = 0; h < state.heads.size(); ++h) {
      const AttentionPairs drawn = DrawAttentionPairs(state.layer, scores, static_cast<int64_t>(h),
                                                      options_.pairs, seed * 64 + h);
      stack(state.heads[h]).Add(AllColumns(drawn.columns));
      if (!held_out) continue;
      for (size_t l = 0; l < drawn.rows.size(); ++l)
        state.heads[h].attention[l].Add(drawn.rows[l], drawn.draws);
    }
  }

  Json Fits(const HeadState& head, const at::Tensor& means, const Layer& layer, int64_t h,
            int64_t levels) const;

  ApproximationOptions options_;
  std::vector<LayerState> layers_;
  int64_t sequences_ = 0, training_ = 0;
};

// The optimisation term around fits on n/4, n/2 and n training sequences.
Json Approximation::Fits(const HeadState& head, const at::Tensor& means, const Layer& layer,
                         int64_t h, int64_t levels) const {
  Json fits = Json::array();
  RowStack seen(means.size(1));
  const int64_t n = options_.training_sequences;
  const int64_t ends[3] = {n / 4, n / 2, n};
  for (size_t part = 0; part < head.training.size(); ++part) {
    if (head.training[part].count() == 0) continue;
    seen.Add(head.training[part]);
    const OptimisationParts parts =
        SplitHead(means, seen.Means(), layer.weights[h], layer.score_gain, levels);
    fits.push_back({{"training_sequences", std::min(ends[part], training_)},
                    {"finite_sample", parts.finite_sample},
                    {"training", parts.training},
                    {"cross", parts.cross},
                    {"sum", parts.sum()},
                    {"train_excess", parts.train_excess},
                    {"train_distance", parts.train_distance}});
  }
  return fits;
}

Json Approximation::Finish() {
  Json truncations = Json::array(), heads = Json::array(), losses = Json::array(),
       levels = Json::array();
  double worst_gap = 0;
  bool bounds_hold = true;
  const auto order = [&](double left, double right, double scale) {
    bounds_hold = bounds_hold && !(left > right * (1 + kOrderTolerance) + 1e-12 * scale);
  };
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i].layer;
    for (size_t l = 0; l < layers_[i].levels.size(); ++l) {
      const LevelSums& sums = layers_[i].levels[l];
      const double phibar = MeanAutocorrelation(sums.Centred());
      levels.push_back({{"layer", i},
                        {"level", l},
                        {"phibar", phibar},
                        {"relative_loss", RelativeLoss(phibar)},
                        {"rescaled_loss", RescaledLoss(phibar)},
                        {"first_sample", sums.first.first / sums.rows},
                        {"cell_mean", sums.first.mean / sums.rows},
                        {"offset", sums.first.offset / sums.rows}});
    }
    for (int64_t h = 0; h < layer.H; ++h) {
      const HeadState& head = layers_[i].heads[static_cast<size_t>(h)];
      const at::Tensor means = head.held_out.Means();
      const HeadTruncations result = DecomposeHead(means, layer.weights[h], layer.score_gain);
      for (const Truncation& t : result.truncations) {
        Json row = {{"layer", i},
                    {"head", h},
                    {"levels", t.levels},
                    {"total", t.terms.total},
                    {"hierarchical", t.terms.hierarchical},
                    {"quantisation", t.terms.quantisation},
                    {"optimisation", t.terms.optimisation},
                    {"sum", t.terms.sum()},
                    {"gap", t.terms.gap()},
                    {"rank_u", t.terms.rank_u},
                    {"rank_v", t.terms.rank_v},
                    {"tail_bound", t.tail_bound}};
        if (t.levels == layer.L) row["quantisation_bound"] = t.quantisation_bound;
        row["fits"] = Fits(head, means, layer, h, t.levels);
        if (options_.weights == PairWeights::kAttention) {
          const AttentionSums& sums = head.attention[static_cast<size_t>(t.levels - 1)];
          row["attention"] = sums.ToJson(t.terms.total);
          bounds_hold = bounds_hold && sums.violations == 0;
        }
        truncations.push_back(std::move(row));
        if (t.terms.total > kNothing * result.target)
          worst_gap = std::max(worst_gap, std::abs(t.terms.gap()));
        order(t.terms.hierarchical, t.tail_bound, result.target);
        if (t.levels == layer.L) order(t.terms.quantisation, t.quantisation_bound, result.target);
      }
      heads.push_back({{"layer", i},
                       {"head", h},
                       {"target", result.target},
                       {"terms", result.terms},
                       {"decay_rate", result.decay_rate}});
      for (int64_t l = 0; l < layer.L; ++l) {
        const at::Tensor s = means.select(1, l) + means.select(1, layer.L + l);
        const at::Tensor st = means.select(1, 2 * layer.L + l) + means.select(1, 3 * layer.L + l);
        const LevelSums& sums = layers_[i].levels[static_cast<size_t>(l)];
        // The biases' column of ones is gone from centred keys, and stays in the queries' rows.
        const at::Tensor M = ScoreForm(layer, l, h).narrow(0, 0, layer.d).narrow(1, 0, layer.d);
        losses.push_back({{"layer", i},
                          {"head", h},
                          {"level", l},
                          {"second_moment", st.square().sum().item<double>()},
                          {"loss", (st - s).square().sum().item<double>()}});
        losses.back()["independent"] =
            layer.bias ? Json(nullptr) : Json(IndependentLoss(M, sums.About0(), sums.Centred()));
      }
    }
  }
  Json json = {{"target", "undecimated"},
               {"weights", options_.weights == PairWeights::kUniform ? "uniform" : "attention"},
               {"pairs", options_.pairs},
               {"sequences", sequences_},
               {"training_sequences", training_},
               {"identity_gap", worst_gap},
               {"identity_holds", worst_gap <= kIdentityTolerance},
               {"bounds_hold", bounds_hold}};
  json["too_few"] = sequences_ < 8 * layers_[0].layer.L;
  json["truncations"] = std::move(truncations);
  json["heads"] = std::move(heads);
  json["quantisation"] = std::move(losses);
  json["levels"] = std::move(levels);
  return json;
}

}  // namespace

std::unique_ptr<ApproximationSubject> MakeApproximationSubject(
    const std::vector<Layer>& layers, const ApproximationOptions& options) {
  return std::make_unique<Approximation>(layers, options);
}

}  // namespace hkt::analysis
