#include "hkt/analysis/removed.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>

#include "hkt/base/error.h"
#include "hkt/train/evaluate.h"

namespace hkt::analysis {
namespace {

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Json Row(const std::vector<int64_t>& removed, const train::Evaluation& whole,
         const train::Evaluation& part, const data::Dataset& dataset) {
  // Paired: the same sequences with and without.
  double gained = 0, lost = 0, changed = 0;
  for (size_t i = 0; i < part.predicted.size(); ++i) {
    const int32_t label = dataset.labels[i];
    const bool before = whole.predicted[i] == label, after = part.predicted[i] == label;
    gained += !before && after;
    lost += before && !after;
    changed += whole.predicted[i] != part.predicted[i];
  }
  const auto n = static_cast<double>(part.samples);
  const double change = (gained - lost) / n;
  const double variance = (gained + lost) / n - change * change;
  return {{"removed", removed},
          {"accuracy", part.accuracy},
          {"loss", part.loss},
          {"change", change},
          {"change_standard_error", std::sqrt(variance / n)},
          {"predictions_changed", changed / n}};
}

}  // namespace

WithoutLevels::WithoutLevels(const train::Model& model, const std::vector<int64_t>& levels) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : model.parameters()) {
    if (!EndsWith(name, ".level_logits")) continue;
    Check(static_cast<int64_t>(levels.size()) < parameter.size(1), "cannot take out ",
          levels.size(), " of ", parameter.size(1), " levels: one has to stay");
    saved_.emplace_back(parameter, parameter.detach().clone());
    for (const int64_t l : levels)
      saved_.back().first.select(1, l).fill_(-std::numeric_limits<double>::infinity());
  }
}

WithoutLevels::~WithoutLevels() {
  const at::NoGradGuard no_grad;
  for (auto& [parameter, values] : saved_) parameter.copy_(values);
}

std::vector<std::vector<int64_t>> RemovedSets(int64_t levels) {
  std::vector<std::vector<int64_t>> sets;
  if (levels < 2) return sets;
  for (int64_t l = 0; l < levels; ++l) sets.push_back({l});
  if (levels > 2) {
    std::vector<int64_t> coarse;
    for (int64_t l = 1; l < levels; ++l) coarse.push_back(l);
    sets.push_back(coarse);
  }
  return sets;
}

Json LevelsRemoved(const AnalysisRun& run, int64_t examples,
                   const std::function<void(int64_t done, int64_t all)>& progress) {
  data::Dataset dataset;
  dataset.channels = run.validation.channels;
  for (const int64_t index : ChooseExamples(run.validation, examples))
    dataset.Add(run.validation.sequence(index), run.validation.labels[static_cast<size_t>(index)]);
  const auto sets = RemovedSets(*run.trained.config.model.levels);
  const auto all = static_cast<int64_t>(sets.size()) + 1;
  const auto evaluate = [&] {
    return *train::Evaluate(run.trained.model, dataset, run.trained.config.train.batch);
  };
  const train::Evaluation whole = evaluate();
  progress(1, all);
  Json json;
  json["split"] = "validation";
  json["samples"] = whole.samples;
  json["standard_error"] =
      std::sqrt(whole.accuracy * (1 - whole.accuracy) / static_cast<double>(whole.samples));
  json["rows"] = Json::array({Row({}, whole, whole, dataset)});
  for (size_t i = 0; i < sets.size(); ++i) {
    const WithoutLevels without(run.trained.model, sets[i]);
    json["rows"].push_back(Row(sets[i], whole, evaluate(), dataset));
    progress(static_cast<int64_t>(i) + 2, all);
  }
  return json;
}

}  // namespace hkt::analysis
