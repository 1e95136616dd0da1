#include "hkt/report/comparisons.h"

#include <algorithm>
#include <map>

#include "hkt/report/published.h"
#include "hkt/report/statistics.h"

namespace hkt::report {
namespace {

using Json = nlohmann::ordered_json;

const Row* Find(const std::vector<Row>& rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.row == name; });
  return found == rows.end() ? nullptr : &*found;
}

Json Optional(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

const Result* OfSeed(const Row& row, int64_t seed) {
  for (const Result* result : row.results) {
    if (result->seed == seed) return result;
  }
  return nullptr;
}

// Planned by all rows, done or not.
int64_t PlannedSeeds(const std::vector<Term>& terms) {
  const std::vector<int64_t>& first = terms.front().row->seeds;
  return std::count_if(first.begin(), first.end(), [&](int64_t seed) {
    return std::all_of(terms.begin(), terms.end(), [&](const Term& term) {
      const auto& seeds = term.row->seeds;
      return std::find(seeds.begin(), seeds.end(), seed) != seeds.end();
    });
  });
}

}  // namespace

Json Contrast(const std::vector<Term>& terms) {
  Json seeds = Json::array(), differences = Json::array();
  std::vector<double> values;
  for (const Result* first : terms.front().row->results) {
    double value = 0;
    bool all = true;
    for (const Term& term : terms) {
      const Result* result = OfSeed(*term.row, first->seed);
      all = all && result != nullptr;
      if (all) value += term.coefficient * result->test_accuracy;
    }
    if (!all) continue;
    seeds.push_back(first->seed);
    differences.push_back(value);
    values.push_back(value);
  }
  Json result = {
      {"seeds", seeds}, {"seeds_planned", PlannedSeeds(terms)}, {"differences", differences}};
  const Interval interval = values.empty() ? Interval{} : TInterval(values);
  result["mean"] = values.empty() ? Json(nullptr) : Json(interval.summary.mean);
  result["deviation"] = Optional(interval.summary.deviation);
  result["low"] = Optional(interval.low);
  result["high"] = Optional(interval.high);
  result["verdict"] = values.empty() ? "missing" : Name(interval.verdict);
  return result;
}

Json McNemarJson(const Result& first, const Result& second) {
  Check(first.test_examples == second.test_examples, second.path.string(), ": ",
        second.test_examples, " test examples, but ", first.path.string(), " has ",
        first.test_examples, "; they are not of the same data");
  const McNemar test = McNemarTest(first.correct, second.correct, first.test_examples);
  return {{"only_first", test.only_first},
          {"only_second", test.only_second},
          {"p", test.p},
          {"method", test.exact ? "exact binomial" : "chi-squared, continuity corrected"}};
}

Json Comparisons(const std::vector<Row>& rows, const std::string& task) {
  Json list = Json::array();
  const Row* hkt = Find(rows, "HKT");
  if (hkt == nullptr) return list;
  const Published* published = PublishedFor(task);
  for (const char* name : {"MHA", "MHA wide", "MHA+conv", "HKT fusion"}) {
    const Row* other = Find(rows, name);
    if (other == nullptr) continue;
    Json comparison = {
        {"label", "HKT \u2212 " + other->row}, {"first", "HKT"}, {"second", other->row}};
    comparison.update(Contrast({{hkt, 1}, {other, -1}}));
    comparison["published_gap"] = nullptr;
    if (published != nullptr && other->row == "MHA")
      comparison["published_gap"] = (published->hkt - published->mha) / 100;
    Json tests = Json::array();
    for (const Json& seed : comparison["seeds"]) {
      Json test = {{"seed", seed}};
      test.update(
          McNemarJson(*OfSeed(*hkt, seed.get<int64_t>()), *OfSeed(*other, seed.get<int64_t>())));
      tests.push_back(test);
    }
    comparison["mcnemar"] = tests;
    list.push_back(comparison);
  }
  return list;
}

Json Effects(const std::vector<Row>& rows) {
  const Row *mha = Find(rows, "MHA"), *conv = Find(rows, "MHA+conv"),
            *fusion = Find(rows, "HKT fusion"), *hkt = Find(rows, "HKT");
  struct Effect {
    const char *label, *formula;
    std::vector<Term> terms;
  };
  const std::vector<Effect> effects = {
      {"hierarchy, without convolution", "HKT fusion \u2212 MHA", {{fusion, 1}, {mha, -1}}},
      {"hierarchy, with convolution", "HKT \u2212 MHA+conv", {{hkt, 1}, {conv, -1}}},
      {"hierarchy, mean of the two",
       "(HKT + HKT fusion \u2212 MHA+conv \u2212 MHA) / 2",
       {{hkt, 0.5}, {fusion, 0.5}, {conv, -0.5}, {mha, -0.5}}},
      {"convolution, at one level", "MHA+conv \u2212 MHA", {{conv, 1}, {mha, -1}}},
      {"convolution, at three levels", "HKT \u2212 HKT fusion", {{hkt, 1}, {fusion, -1}}},
      {"convolution, mean of the two",
       "(HKT + MHA+conv \u2212 HKT fusion \u2212 MHA) / 2",
       {{hkt, 0.5}, {conv, 0.5}, {fusion, -0.5}, {mha, -0.5}}},
      {"interaction",
       "HKT \u2212 HKT fusion \u2212 MHA+conv + MHA",
       {{hkt, 1}, {fusion, -1}, {conv, -1}, {mha, 1}}}};
  Json list = Json::array();
  for (const Effect& effect : effects) {
    const bool planned = std::all_of(effect.terms.begin(), effect.terms.end(),
                                     [](const Term& term) { return term.row != nullptr; });
    if (!planned) continue;
    Json entry = {{"label", effect.label}, {"formula", effect.formula}};
    entry.update(Contrast(effect.terms));
    list.push_back(entry);
  }
  return list;
}

}  // namespace hkt::report
