#include "hkt/train/report.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "hkt/base/error.h"
#include "hkt/data/listops.h"

namespace hkt::train {
namespace {

using Json = nlohmann::ordered_json;

Json Ratio(int64_t part, int64_t whole) {
  return whole > 0 ? Json(static_cast<double>(part) / static_cast<double>(whole)) : Json(nullptr);
}

struct Tally {
  int64_t samples = 0, correct = 0;
};

template <class Key>
Json Tallies(const std::map<Key, Tally>& tallies) {
  Json result = Json::object();
  for (const auto& [key, tally] : tallies) {
    result[Concat(key)] = {{"samples", tally.samples},
                           {"accuracy", Ratio(tally.correct, tally.samples)}};
  }
  return result;
}

void AddListOps(const data::Dataset& dataset, const std::vector<int32_t>& predicted, Json* report) {
  std::map<int, Tally> by_depth;
  std::map<std::string, Tally> by_operator;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const auto tokens = dataset.sequence(i);
    const bool correct =
        predicted[static_cast<size_t>(i)] == dataset.labels[static_cast<size_t>(i)];
    for (Tally* tally : {&by_depth[data::listops::Depth(tokens)],
                         &by_operator[std::string(data::listops::RootOperator(tokens))]}) {
      ++tally->samples;
      tally->correct += correct;
    }
  }
  (*report)["by_depth"] = Tallies(by_depth);
  (*report)["by_root_operator"] = Tallies(by_operator);
}

}  // namespace

Json ClassificationReport(const data::TaskInfo& task, const data::Dataset& dataset,
                          const std::vector<int32_t>& predicted) {
  Check(static_cast<int64_t>(predicted.size()) == dataset.size(), predicted.size(),
        " predictions for ", dataset.size(), " samples");
  const size_t classes = task.classes.size();
  std::vector<std::vector<int64_t>> confusion(classes, std::vector<int64_t>(classes));
  for (size_t i = 0; i < predicted.size(); ++i) {
    ++confusion.at(static_cast<size_t>(dataset.labels[i])).at(static_cast<size_t>(predicted[i]));
  }
  std::vector<int64_t> actual(classes), guessed(classes);
  int64_t correct = 0;
  for (size_t row = 0; row < classes; ++row) {
    correct += confusion[row][row];
    for (size_t column = 0; column < classes; ++column) {
      actual[row] += confusion[row][column];
      guessed[column] += confusion[row][column];
    }
  }
  const int64_t samples = dataset.size();
  const auto majority =
      static_cast<size_t>(std::max_element(actual.begin(), actual.end()) - actual.begin());
  Json report;
  report["samples"] = samples;
  report["accuracy"] = Ratio(correct, samples);
  if (samples > 0) {
    const double accuracy = static_cast<double>(correct) / static_cast<double>(samples);
    report["standard_error"] = std::sqrt(accuracy * (1 - accuracy) / static_cast<double>(samples));
  }
  report["majority"] = {{"class", task.classes.at(majority)},
                        {"share", Ratio(actual[majority], samples)}};
  report["classes"] = Json::array();
  for (size_t c = 0; c < classes; ++c) {
    report["classes"].push_back({{"name", task.classes[c]},
                                 {"samples", actual[c]},
                                 {"predicted", guessed[c]},
                                 {"recall", Ratio(confusion[c][c], actual[c])},
                                 {"precision", Ratio(confusion[c][c], guessed[c])}});
  }
  report["confusion"] = confusion;
  if (task.name == "listops") AddListOps(dataset, predicted, &report);
  return report;
}

}  // namespace hkt::train
