// hkt data floors | ladder: what needs no model.

#include <cmath>
#include <cstdio>

#include "cli/data_jobs.h"
#include "cli/output.h"
#include "hkt/base/error.h"
#include "hkt/data/floors.h"
#include "hkt/data/listops_ladder.h"

namespace hkt::cli {
namespace {

using data::Dataset;
using data::Split;
using Json = nlohmann::ordered_json;

double StandardError(double accuracy, int64_t examples) {
  return std::sqrt(accuracy * (1 - accuracy) / static_cast<double>(examples));
}

}  // namespace

void Floors(const DataState& state) {
  const auto loaded = LoadAll(state.data());
  const data::TaskInfo& info = loaded.info;
  const Dataset& train = loaded.splits.at(Split::kTrain);
  const auto classes = static_cast<int64_t>(info.classes.size());
  Json document = DataHeader(state.data());
  document["seq_len"] = info.seq_len;
  const auto add = [&](const char* key, const auto& accuracy_on) {
    for (Split split : {Split::kValidation, Split::kTest}) {
      const Dataset& dataset = loaded.splits.at(split);
      const double accuracy = accuracy_on(dataset);
      const std::string name(data::SplitName(split));
      document["floors"][key][name] = accuracy;
      document["standard_error"][key][name] = StandardError(accuracy, dataset.size());
    }
  };
  add("majority",
      [&](const Dataset& dataset) { return data::MajorityAccuracy(train, dataset, classes); });
  const data::CountRegression counts(train, info.vocabulary, classes);
  add("count_regression", [&](const Dataset& dataset) { return counts.Accuracy(dataset); });
  document["iterations"]["count_regression"] = counts.iterations();
  if (data::TakesImages(state.data())) {
    const data::ValueRegression values(train, classes);
    add("value_regression", [&](const Dataset& dataset) { return values.Accuracy(dataset); });
    document["iterations"]["value_regression"] = values.iterations();
  }
  if (state.json) return PrintJson(document);
  PrintDataTitle(state.data());
  std::printf("%-46s %16s %16s\n", "accuracy in %, with its standard error", "validation", "test");
  for (const auto& [key, floor] : document["floors"].items()) {
    const std::string text = key == "majority"           ? "most frequent class of train"
                             : key == "count_regression" ? "logistic regression on token counts"
                             : info.channels > 1         ? "logistic regression on channel values"
                                                         : "logistic regression on grey values";
    std::printf("%-46s", text.c_str());
    for (const char* split : {"validation", "test"}) {
      std::printf("    %6.2f +- %.2f", 100 * floor[split].get<double>(),
                  100 * document["standard_error"][key][split].get<double>());
    }
    std::printf("\n");
  }
}

void Ladder(const DataState& state) {
  CheckUsage(state.is_listops(), "hkt data ladder is about ListOps; task is ", state.data().task);
  CheckUsage(!state.data().seq_len, "hkt data ladder needs whole expressions; leave --seq-len out");
  const Splits splits = data::Load(state.data(), {Split::kTrain, Split::kTest});
  const auto ladder = data::listops::ComputeLadder(
      data::listops::FindPreset(state.data().preset), splits.at(Split::kTrain),
      splits.at(Split::kTest), static_cast<uint64_t>(state.data().data_seed));
  constexpr std::array<const char*, 4> kOperators = {"MIN", "MAX", "MED", "SM"};
  Json document = DataHeader(state.data());
  document["split"] = "test";
  document["examples"] = ladder.examples;
  document["draws"] = data::listops::kLadderDraws;
  for (size_t op = 0; op < kOperators.size(); ++op)
    document["examples_by_root_operator"][kOperators[op]] = ladder.operators[op];
  for (const data::listops::Rung& rung : ladder.rungs) {
    Json& entry = document["ladder"][rung.name];
    entry["accuracy"] = rung.accuracy;
    entry["standard_error"] = StandardError(rung.accuracy, ladder.examples);
    for (size_t op = 0; op < kOperators.size(); ++op)
      entry["by_root_operator"][kOperators[op]] = rung.by_operator[op];
  }
  if (state.json) return PrintJson(document);
  PrintDataTitle(state.data());
  std::printf(
      "accuracy in %% on %lld examples of test, by root operator; what the predictor knows\n",
      static_cast<long long>(ladder.examples));
  std::printf("%-40s %6s", "", "all");
  for (const char* name : kOperators) std::printf(" %6s", name);
  std::printf("\n");
  for (const data::listops::Rung& rung : ladder.rungs) {
    const std::string text = rung.name == "majority"        ? "nothing: the most frequent class"
                             : rung.name == "root_operator" ? "the root operator"
                                                            : "all to depth " + rung.name.substr(6);
    std::printf("%-40s %6.1f", text.c_str(), 100 * rung.accuracy);
    for (double accuracy : rung.by_operator) std::printf(" %6.1f", 100 * accuracy);
    std::printf("\n");
  }
}

}  // namespace hkt::cli
