#include "hkt/report/analysis_summary.h"

#include <array>
#include <map>
#include <utility>

#include "hkt/base/error.h"
#include "hkt/report/rounded.h"

namespace hkt::report {
namespace {

constexpr int64_t kMostLevels = 64;  // a level halves the positions at least

struct Source {
  const char* name;     // in the result
  const char* subject;  // analysis[subject][list], rows a layer, head and level
  const char* list;
  const char* key;
};

constexpr std::array<Source, 11> kSources = {{
    {"lambda", "mixture", "levels", "lambda"},
    {"beta", "mixture", "levels", "beta"},
    {"weight", "mixture", "levels", "weight"},
    {"variance_share", "mixture", "levels", "variance_share"},
    {"negative_share", "kernel", "levels", "negative_share"},
    {"negative_energy", "kernel", "levels", "negative_energy"},
    {"locality_preference", "kernel", "levels", "locality_preference"},
    {"antisymmetric_share", "direction", "levels", "alpha"},
    {"antisymmetric_expected", "direction", "levels", "expected"},
    {"antisymmetric_z", "direction", "levels", "z"},
    {"score_kurtosis", "kurtosis", "scores", "kurtosis"},
}};

const Json* Rows(const Json& document, const Source& source) {
  if (!document.contains(source.subject)) return nullptr;  // passed over, for rotary models
  const Json& subject = document[source.subject];
  return &subject.at(source.list);
}

using Figures = std::map<std::pair<int64_t, int64_t>, std::vector<Json>>;  // [layer, head][level]

Figures ByHead(const Json& document, const Source& source) {
  Figures figures;
  const Json* rows = Rows(document, source);
  if (rows == nullptr) return figures;
  for (const Json& row : *rows) {
    if (row.at("level").is_null()) continue;  // the fused score
    auto& levels = figures[{row.at("layer").get<int64_t>(), row.at("head").get<int64_t>()}];
    const auto level = row.at("level").get<int64_t>();
    const Json& value = row.at(source.key);
    Check(level >= 0 && level < kMostLevels && (value.is_number() || value.is_null()),
          source.subject, ".", source.list, ": level ", level, " has no number as its ",
          source.key);
    const auto at = static_cast<size_t>(level);
    if (levels.size() <= at) levels.resize(at + 1);
    levels[at] = value;
  }
  return figures;
}

// A list over levels of means over layers and heads; null where a figure is not defined.
Json Means(const Figures& figures) {
  std::vector<std::pair<double, int64_t>> sums;
  for (const auto& [head, levels] : figures) {
    if (sums.size() < levels.size()) sums.resize(levels.size());
    for (size_t l = 0; l < levels.size(); ++l) {
      if (!levels[l].is_number()) continue;
      sums[l].first += levels[l].get<double>();
      ++sums[l].second;
    }
  }
  Json means = Json::array();
  for (const auto& [sum, count] : sums)
    means.push_back(count > 0 ? Rounded(sum / static_cast<double>(count)) : Json());
  return means;
}

Json MeansOf(const Json& document) {
  Json means = Json::object();
  for (const Source& source : kSources) {
    const Figures figures = ByHead(document, source);
    if (!figures.empty()) means[source.name] = Means(figures);
  }
  return means;
}

}  // namespace

Json SummarizeAnalysis(const Json& analysis) {
  Json summary;
  std::map<std::pair<int64_t, int64_t>, Json> heads;
  for (const Source& source : kSources) {
    for (const auto& [head, levels] : ByHead(analysis, source)) {
      Json& row = heads[head];
      if (row.is_null()) row = {{"layer", head.first}, {"head", head.second}};
      Json& list = row[source.name] = Json::array();
      for (const Json& value : levels) list.push_back(Rounded(value));
    }
  }
  summary["heads"] = Json::array();
  for (auto& [head, row] : heads) summary["heads"].push_back(std::move(row));
  summary["levels"] = MeansOf(analysis);
  summary["levels_initial"] =
      analysis.contains("initial") ? MeansOf(analysis["initial"]) : Json(nullptr);
  summary["levels_removed"] = Json::array();
  if (analysis.contains("levels_removed")) {
    for (const Json& row : analysis["levels_removed"].at("rows")) {
      summary["levels_removed"].push_back(
          {{"removed", row.at("removed")},
           {"accuracy", row.at("accuracy")},
           {"change", row.at("change")},
           {"change_standard_error", row.at("change_standard_error")}});
    }
  }
  return summary;
}

}  // namespace hkt::report
