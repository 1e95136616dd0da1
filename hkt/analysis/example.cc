#include "hkt/analysis/example.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/data/task.h"
#include "hkt/data/token_text.h"
#include "hkt/train/evaluate.h"
#include "hkt/train/text_lines.h"

namespace hkt::analysis {
namespace {

constexpr int64_t kChunk = 256;  // rows at a time, about

at::Tensor Valid(const Layer& layer, int64_t begin, int64_t end, int64_t columns) {
  if (!layer.causal) return at::ones({end - begin, columns}, at::kBool);
  const at::Tensor rows = at::arange(begin, end, at::kLong).unsqueeze(1);
  return at::arange(columns, at::kLong).unsqueeze(0) <= rows;
}

// [n, m] -> sums over blocks of bin columns [n, ceil(m / bin)], over the last dimension.
at::Tensor SumColumns(const at::Tensor& x, int64_t bin) {
  const int64_t m = x.size(-1), bins = CeilDiv(m, bin);
  return at::constant_pad_nd(x, {0, bins * bin - m}).unflatten(-1, {bins, bin}).sum(-1);
}

// Rows of bins, computed a few bins at a time: part(begin, end) gives the averaged rows of these
// positions, [H, rows, columns].
at::Tensor OverBins(
    int64_t H, int64_t positions,
    const std::function<at::Tensor(int64_t begin, int64_t end, int64_t bin)>& part) {
  const int64_t bin = BinSize(positions), bins = CeilDiv(positions, bin);
  at::Tensor result = at::empty({H, bins, bins}, at::kDouble);
  const int64_t together = std::max<int64_t>(1, kChunk / bin);
  for (int64_t row = 0; row < bins; row += together) {
    const int64_t last = std::min(bins, row + together);
    const at::Tensor rows = part(row * bin, std::min(positions, last * bin), bin);
    result.slice(1, row, last).copy_(rows);
  }
  return result;
}

// Four significant digits: what a picture needs, a third of the bytes.
double Rounded(double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double unit = std::pow(10.0, std::floor(std::log10(std::abs(x))) - 3);
  // By division where the unit is below 1, so that the shortest decimal form is the rounded one.
  return unit < 1 ? std::round(x / unit) / std::round(1 / unit) : std::round(x / unit) * unit;
}

// Row r holds the columns up to r with the causal mask, all without.
Json MatrixToJson(const at::Tensor& matrix, bool causal) {
  Json rows = Json::array();
  const at::Tensor values = matrix.contiguous();
  const auto* data = values.const_data_ptr<double>();
  const int64_t columns = values.size(1);
  for (int64_t r = 0; r < values.size(0); ++r) {
    Json row = Json::array();
    for (int64_t c = 0; c < (causal ? std::min(columns, r + 1) : columns); ++c)
      row.push_back(Rounded(data[r * columns + c]));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

at::Tensor AttentionRows(const Layer& layer, const std::vector<at::Tensor>& levels, int64_t begin,
                         int64_t end) {
  const at::Tensor scores = FusedScores(layer, levels, begin, end);
  const at::Tensor masked = Valid(layer, begin, end, levels.at(0).size(0)).logical_not();
  return at::softmax(scores.masked_fill(masked, -std::numeric_limits<double>::infinity()), 2);
}

at::Tensor LevelRows(const Layer& layer, int64_t l, const std::vector<at::Tensor>& levels,
                     int64_t begin, int64_t end) {
  const Projections p = Project(layer, l, levels.at(static_cast<size_t>(l)));
  const at::Tensor weight =
      layer.weights.select(1, l).unsqueeze(1).unsqueeze(2) * (layer.scale * layer.score_gain);
  return at::matmul(p.query.slice(1, begin, end) * weight, p.key.transpose(1, 2));
}

int64_t BinSize(int64_t positions) { return std::max<int64_t>(1, CeilDiv(positions, kMostRows)); }

at::Tensor AveragedAttention(const Layer& layer, const std::vector<at::Tensor>& levels) {
  return OverBins(layer.H, levels.at(0).size(0), [&](int64_t begin, int64_t end, int64_t bin) {
    const at::Tensor rows = SumColumns(AttentionRows(layer, levels, begin, end), bin);
    const at::Tensor ones = at::ones({end - begin}, at::kDouble);
    return SumColumns(rows.transpose(1, 2), bin).transpose(1, 2) /
           SumColumns(ones, bin).unsqueeze(1);
  });
}

at::Tensor AveragedScores(const Layer& layer, int64_t l, const std::vector<at::Tensor>& levels) {
  const int64_t Tl = levels.at(static_cast<size_t>(l)).size(0);
  return OverBins(layer.H, Tl, [&](int64_t begin, int64_t end, int64_t bin) {
    const auto blocks = [bin](const at::Tensor& x) {
      return SumColumns(SumColumns(x, bin).transpose(-1, -2), bin).transpose(-1, -2);
    };
    const at::Tensor valid = Valid(layer, begin, end, Tl);
    const at::Tensor scores = LevelRows(layer, l, levels, begin, end);
    // 0 / 0 = NaN where a block has no valid pair.
    return blocks(at::where(valid, scores, 0.0)) / blocks(valid.to(at::kDouble));
  });
}

Example ExampleOfSplit(const AnalysisRun& run, int64_t index) {
  const data::Dataset& dataset = run.validation;
  CheckUsage(index >= 0 && index < dataset.size(), "--example is ", index, ", must be from 0 to ",
             dataset.size() - 1, ", a sequence of the validation split");
  Check(dataset.length(index) > 0, "sequence ", index, " has no tokens; choose another --example");
  Example example;
  example.alone.channels = dataset.channels;
  example.alone.Add(dataset.sequence(index), dataset.labels[static_cast<size_t>(index)]);
  example.index = index;
  return example;
}

Example ExampleOfText(const AnalysisRun& run, std::string_view text) {
  const DataConfig& config = run.trained.config.data;
  CheckUsage(!data::TakesImages(config), "--text is for tasks whose input is text; this run's is ",
             config.task, ": choose a sequence with --example");
  const train::Sample sample = train::EncodeText(config, text, "--text");
  CheckUsage(!sample.tokens.empty(), "--text is blank; give a text to look at");
  CheckUsage(!sample.truncated, "--text is longer than the model's longest sequence, ",
             run.trained.task.seq_len, " tokens; shorten it");
  Example example;
  example.alone.Add(sample.tokens, 0);
  return example;
}

Json ExampleToJson(const AnalysisRun& run, const std::vector<Layer>& layers,
                   const Example& example) {
  Json json;
  VisitSequences(
      run.trained.model, example.alone, std::vector<int64_t>{0},
      [&](const SequenceCapture& sequence) {
        const train::Evaluation evaluation = *train::Evaluate(run.trained.model, example.alone, 1);
        const auto& classes = run.trained.task.classes;
        const auto label = static_cast<size_t>(example.alone.labels.front());
        json["index"] = example.index ? Json(*example.index) : Json(nullptr);
        json["length"] = sequence.length;
        json["label"] = example.index ? Json(classes.at(label)) : Json(nullptr);
        json["predicted"] = classes.at(static_cast<size_t>(evaluation.predicted[0]));
        json["probability"] = evaluation.probability[0];
        json["tokens"] = Json::array();
        const auto values = example.alone.sequence(0);
        const auto channels = static_cast<size_t>(example.alone.channels);
        for (size_t t = 0; t < static_cast<size_t>(sequence.length); ++t) {
          json["tokens"].push_back(
              data::StepText(run.trained.task.name, values.subspan(t * channels, channels)));
        }
        json["tokens_per_row"] = BinSize(sequence.length);
        json["matrices"] = Json::array();
        for (size_t i = 0; i < layers.size(); ++i) {
          const Layer& layer = layers[i];
          const SequenceLevels levels = Pyramid(layer, sequence.inputs[i]);
          const at::Tensor attention = AveragedAttention(layer, levels.x);
          std::vector<at::Tensor> scores;
          for (int64_t l = 0; l < layer.L; ++l)
            scores.push_back(AveragedScores(layer, l, levels.x));
          for (int64_t h = 0; h < layer.H; ++h) {
            Json matrices = {{"layer", i}, {"head", h}};
            matrices["attention"] = MatrixToJson(attention[h], layer.causal);
            matrices["levels"] = Json::array();
            for (int64_t l = 0; l < layer.L; ++l) {
              const auto n = static_cast<size_t>(l);
              const int64_t positions = levels.x[n].size(0);
              matrices["levels"].push_back({{"level", l},
                                            {"positions", positions},
                                            {"tokens_per_row", BinSize(positions) * layer.step(l)},
                                            {"scores", MatrixToJson(scores[n][h], layer.causal)}});
            }
            json["matrices"].push_back(std::move(matrices));
          }
        }
      });
  return json;
}

}  // namespace hkt::analysis
