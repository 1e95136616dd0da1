// Beside the table: what trained models look like, and figures that other commands measure.

#include <cmath>
#include <map>

#include "hkt/report/experiments_report.h"
#include "hkt/report/statistics.h"

namespace hkt::report {
namespace {

using Json = nlohmann::ordered_json;

struct Claim {
  const char *key, *title, *published, *note;
};

// hkt.md's figures, with the notes of theory.md 2.5 and 3.5.
constexpr Claim kClaims[] = {
    {"negative_share", "share of negative eigenvalues",
     "about half of the eigenvalues of the score matrices are negative",
     "An identity, not a finding: with 2 D <= d and projections of full rank exactly half of a "
     "head's nonzero eigenvalues are negative, before training and after it. Read the energy "
     "share."},
    {"negative_energy", "energy of the negative eigenvalues", "",
     "The sum of their squares over that of all: what training can change."},
    {"antisymmetric_share", "antisymmetric share", "grows from level 0 upward",
     "Independent projections of width d have (d - 1) / (2 d), nearly one half, untrained: a "
     "rise is a finding only beside the same runs before training."},
    {"antisymmetric_z", "antisymmetric share, standard deviations from chance",
     "grows from level 0 upward", "0: as for projections that know nothing of each other."},
    {"score_kurtosis", "kurtosis of the scores", "about 33",
     "The published 33 can only be a kurtosis of scores: Mardia's kurtosis of a level of width 64 "
     "is 4224 for Gaussian rows."}};

Json ValueAt(const Json& levels, const char* key, size_t level) {
  if (!levels.is_object() || !levels.contains(key) || level >= levels[key].size()) return nullptr;
  return levels[key][level];
}

// Means over runs, a level a row: {level, trained {…}, initial {…}}.
Json Levels(const std::vector<const Result*>& results, const char* key) {
  size_t count = 0;
  for (const Result* result : results) {
    const Json& levels = result->analysis["levels"];
    if (levels.contains(key)) count = std::max(count, levels[key].size());
  }
  Json rows = Json::array();
  for (size_t level = 0; level < count; ++level) {
    std::vector<double> trained, initial;
    for (const Result* result : results) {
      const Json now = ValueAt(result->analysis["levels"], key, level);
      const Json before = ValueAt(result->analysis.value("levels_initial", Json()), key, level);
      if (now.is_number()) trained.push_back(now.get<double>());
      if (before.is_number()) initial.push_back(before.get<double>());
    }
    rows.push_back(
        {{"level", level}, {"trained", SummaryJson(trained)}, {"initial", SummaryJson(initial)}});
  }
  return rows;
}

}  // namespace

Json Structure(const std::vector<PlannedRow>& rows) {
  Json groups = Json::array();
  for (const PlannedRow& planned : rows) {
    std::vector<const Result*> analysed;
    for (const Result* result : planned.row.results) {
      if (!result->analysis.is_null()) analysed.push_back(result);
    }
    if (analysed.empty()) continue;
    Json group = {{"task", planned.run->config.data.task},
                  {"row", planned.row.row},
                  {"runs", analysed.size()},
                  {"claims", Json::array()},
                  {"heads", Json::array()},
                  {"levels_removed", Json::array()}};
    for (const Claim& claim : kClaims)
      group["claims"].push_back({{"key", claim.key}, {"levels", Levels(analysed, claim.key)}});
    for (const Result* result : analysed) {
      for (Json head : result->analysis["heads"]) {
        head["seed"] = result->seed;
        group["heads"].push_back(head);
      }
      for (Json removed : result->analysis.value("levels_removed", Json::array())) {
        removed["seed"] = result->seed;
        group["levels_removed"].push_back(removed);
      }
    }
    groups.push_back(group);
  }
  if (groups.empty()) return nullptr;
  Json claims = Json::array();
  for (const Claim& claim : kClaims)
    claims.push_back({{"key", claim.key},
                      {"title", claim.title},
                      {"published", claim.published},
                      {"note", claim.note}});
  return {{"claims", claims}, {"groups", groups}};
}

Json TrainingStep(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return nullptr;
  Json storage;
  const JsonReader file = JsonReader::Read(path, "hkt bench train --json", storage);
  const JsonReader arms = file["arms"];
  if (!arms.json().is_object()) arms.FailHere("an object");
  Json result = {{"seq_len", file["seq_len"].Count()}, {"arms", Json::array()}};
  if (file.Has("environment") && file["environment"].Has("processor"))
    result["processor"] = file["environment"]["processor"].Text();
  const double seconds = arms["mha"]["median_seconds"].Number();
  const auto memory = [&](const std::string& name) -> Json {
    const JsonReader arm = arms[name];
    if (!arm.Has("memory_bytes") || arm["memory_bytes"].json().is_null()) return nullptr;
    return arm["memory_bytes"].Count();
  };
  const Json least = memory("mha");
  for (const auto& [name, value] : arms.json().items()) {
    const JsonReader arm = arms[name];
    Json row = {{"arm", name}, {"seconds", arm["median_seconds"].Number()}};
    row["ratio"] = row["seconds"].get<double>() / seconds;
    row["parameters"] = arm.Has("parameters") ? Json(arm["parameters"].Count()) : Json(nullptr);
    row["memory_bytes"] = memory(name);
    row["memory_ratio"] = nullptr;
    if (least.is_number() && least.get<double>() > 0 && row["memory_bytes"].is_number())
      row["memory_ratio"] = row["memory_bytes"].get<double>() / least.get<double>();
    result["arms"].push_back(row);
  }
  return result;
}

Json Ladder(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return nullptr;
  Json storage;
  const JsonReader file = JsonReader::Read(path, "hkt data ladder --json", storage);
  Json result = file.Pick({"preset", "split", "examples", "draws"});
  result["steps"] = Json::array();
  const JsonReader ladder = file["ladder"];
  if (!ladder.json().is_object()) ladder.FailHere("an object");
  for (const auto& [name, value] : ladder.json().items()) {
    const JsonReader step = ladder[name];
    Json row = {{"predictor", name}, {"accuracy", step["accuracy"].Share()}};
    row["by_operator"] = Json::object();
    const JsonReader operators = step["by_root_operator"];
    for (const auto& [root, share] : operators.json().items())
      row["by_operator"][root] =
          operators[root].json().is_null() ? Json(nullptr) : Json(operators[root].Share());
    result["steps"].push_back(row);
  }
  return result;
}

Json Floors(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return nullptr;
  Json storage;
  const JsonReader file = JsonReader::Read(path, "hkt data floors --json", storage);
  Json rows = Json::array();
  const JsonReader floors = file["floors"];
  if (!floors.json().is_object()) floors.FailHere("an object");
  for (const auto& [name, value] : floors.json().items())
    rows.push_back({{"floor", name},
                    {"validation", floors[name]["validation"].Share()},
                    {"test", floors[name]["test"].Share()}});
  return rows;
}

}  // namespace hkt::report
