#include "hkt/report/experiments_report.h"

#include <algorithm>
#include <map>
#include <set>

#include "hkt/report/published.h"
#include "hkt/report/report.h"
#include "hkt/report/statistics.h"

namespace hkt::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kTable = "table";
constexpr const char* kRecipe =
    "recipe";  // the tier of the trials that chose the options of others

// The order of the design, then any other.
size_t RowRank(const std::string& row) {
  constexpr std::array<std::string_view, 5> kOrder = {"MHA", "MHA wide", "MHA+conv", "HKT fusion",
                                                      "HKT"};
  return static_cast<size_t>(std::find(kOrder.begin(), kOrder.end(), row) - kOrder.begin());
}

size_t TaskRank(const std::string& task) {
  constexpr std::array<std::string_view, 4> kOrder = {"listops", "imdb", "cifar10", "text"};
  return static_cast<size_t>(std::find(kOrder.begin(), kOrder.end(), task) - kOrder.begin());
}

std::string TaskTitle(const std::string& task) {
  if (task == "listops") return "ListOps";
  if (task == "imdb") return "IMDB (bytes)";
  if (task == "cifar10") return "sequential CIFAR-10";
  return task;
}

// Of the results that have it.
template <class Field>
std::vector<double> Values(const Row& row, Field field) {
  std::vector<double> values;
  for (const Result* result : row.results) {
    const std::optional<double> value(field(*result));
    if (value) values.push_back(*value);
  }
  return values;
}

Json Mean(const std::vector<double>& values) {
  return values.empty() ? Json(nullptr) : Json(Summarise(values).mean);
}

// Examples and correct ones by depth or operator, summed over the seeds.
Json SumTallies(const Row& row, Json Result::*member, const char* key) {
  std::vector<Json> keys;
  std::map<std::string, std::pair<int64_t, int64_t>> sums;
  for (const Result* result : row.results) {
    if ((result->*member).is_null()) continue;
    for (const Json& tally : result->*member) {
      const std::string name = tally[key].dump();
      if (!sums.contains(name)) keys.push_back(tally[key]);
      sums[name].first += tally["examples"].get<int64_t>();
      sums[name].second += tally["correct"].get<int64_t>();
    }
  }
  std::sort(keys.begin(), keys.end());
  Json list = Json::array();
  for (const Json& value : keys) {
    const auto& [examples, correct] = sums[value.dump()];
    list.push_back({{"row", row.row},
                    {key, value},
                    {"examples", examples},
                    {"accuracy", examples == 0 ? Json(nullptr)
                                               : Json(static_cast<double>(correct) /
                                                      static_cast<double>(examples))}});
  }
  return list;
}

Json RowJson(const PlannedRow& planned) {
  const Row& row = planned.row;
  const ModelConfig& model = planned.run->config.model;
  Json json = {{"row", row.row},
               {"name", row.name},
               {"levels", model.levels.value_or(1)},
               {"convolution", model.hybrid.value_or(false)},
               {"seeds_planned", row.seeds},
               {"seeds", Json::array()}};
  for (const Result* result : row.results) json["seeds"].push_back(result->seed);
  json["test"] = SummaryJson(Values(row, [](const Result& r) { return r.test_accuracy; }));
  json["best"] = SummaryJson(Values(row, [](const Result& r) { return r.best_accuracy; }));
  json["last"] = SummaryJson(Values(row, [](const Result& r) { return r.last_accuracy; }));
  json["parameters"] = Mean(Values(row, [](const Result& r) { return r.parameters; }));
  json["steps"] = planned.run->config.train.steps;
  json["batch"] = planned.run->config.train.batch;
  json["lr"] = planned.run->config.train.lr;
  json["cpu_seconds"] = Mean(Values(row, [](const Result& r) { return r.cpu_seconds; }));
  json["wall_seconds"] = Mean(Values(row, [](const Result& r) { return r.wall_seconds; }));
  json["peak_memory_bytes"] =
      Mean(Values(row, [](const Result& r) { return r.peak_memory_bytes; }));
  json["published"] = json["distance"] = nullptr;
  const Published* published = PublishedFor(planned.run->config.data.task);
  if (published != nullptr && (row.row == "HKT" || row.row == "MHA")) {
    const bool hkt = row.row == "HKT";
    const double mean = (hkt ? published->hkt : published->mha) / 100;
    json["published"] = {
        {"mean", mean},
        {"deviation", (hkt ? published->hkt_deviation : published->mha_deviation) / 100}};
    if (!json["test"].is_null()) json["distance"] = json["test"]["mean"].get<double>() - mean;
  }
  return json;
}

Json TaskJson(const std::string& task, const std::vector<PlannedRow>& rows,
              const std::filesystem::path& results) {
  Json json = {{"task", task}, {"title", TaskTitle(task)}};
  std::vector<Row> table;
  json["sizes"] = nullptr;
  json["rows"] = json["curves"] = json["by_depth"] = json["by_operator"] = Json::array();
  for (const PlannedRow& planned : rows) {
    table.push_back(planned.row);
    json["rows"].push_back(RowJson(planned));
    for (const Result* result : planned.row.results) {
      json["sizes"] = {{"train", result->train_examples},
                       {"validation", result->validation_examples},
                       {"test", result->test_examples}};
      json["curves"].push_back({{"row", planned.row.row},
                                {"seed", result->seed},
                                {"training", result->training_curve},
                                {"validation", result->validation_curve}});
    }
    for (Json& tally : SumTallies(planned.row, &Result::by_depth, "depth"))
      json["by_depth"].push_back(tally);
    for (Json& tally : SumTallies(planned.row, &Result::by_operator, "operator"))
      json["by_operator"].push_back(tally);
  }
  const Published* published = PublishedFor(task);
  json["published_note"] = published == nullptr ? Json(nullptr) : Json(published->note);
  json["floors"] = Floors(results / ("floors-" + task + ".json"));
  json["comparisons"] = Comparisons(table, task);
  json["effects"] = Effects(table);
  return json;
}

std::vector<PlannedRow> PlannedRows(const std::vector<ExperimentRun>& runs,
                                    const std::vector<Result>& results) {
  std::vector<PlannedRow> rows;
  for (const ExperimentRun& run : runs) {
    auto found = std::find_if(rows.begin(), rows.end(), [&](const PlannedRow& planned) {
      return planned.row.name == run.name;
    });
    if (found == rows.end()) {
      rows.push_back({&run, {.name = run.name, .row = run.row, .seeds = {}, .results = {}}});
      found = rows.end() - 1;
    }
    found->row.seeds.push_back(run.seed);
    for (const Result& result : results) {
      if (result.name == run.name && result.seed == run.seed) found->row.results.push_back(&result);
    }
  }
  for (PlannedRow& planned : rows) {
    std::sort(planned.row.seeds.begin(), planned.row.seeds.end());
    std::sort(planned.row.results.begin(), planned.row.results.end(),
              [](const Result* a, const Result* b) { return a->seed < b->seed; });
  }
  std::stable_sort(rows.begin(), rows.end(), [](const PlannedRow& a, const PlannedRow& b) {
    return std::pair(TaskRank(a.run->config.data.task), RowRank(a.row.row)) <
           std::pair(TaskRank(b.run->config.data.task), RowRank(b.row.row));
  });
  return rows;
}

Json Missing(const std::vector<PlannedRow>& rows) {
  Json list = Json::array();
  for (const PlannedRow& planned : rows) {
    Json seeds = Json::array();
    for (const int64_t seed : planned.row.seeds) {
      if (std::none_of(planned.row.results.begin(), planned.row.results.end(),
                       [&](const Result* result) { return result->seed == seed; }))
        seeds.push_back(seed);
    }
    if (!seeds.empty())
      list.push_back({{"name", planned.row.name},
                      {"row", planned.row.row},
                      {"task", planned.run->config.data.task},
                      {"group", planned.run->group},
                      {"seeds", seeds}});
  }
  return list;
}

// What makes a comparison unfair or a result doubtful, in words.
Json Notes(const std::vector<ExperimentRun>& runs, const std::vector<PlannedRow>& rows,
           const std::vector<Result>& results) {
  Json notes = Json::array();
  std::map<std::string, int64_t> dirty;
  for (const Result& result : results) {
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const ExperimentRun& one) {
      return one.name == result.name && one.seed == result.seed;
    });
    const std::string id = result.name + ", seed " + std::to_string(result.seed);
    if (run == runs.end()) {
      notes.push_back(id + ": a result without an experiment; it is not counted");
      continue;
    }
    for (const std::string& difference :
         ConfigDifferences(*run, result.config, result.path.string()))
      notes.push_back(id + ": " + difference);
    if (result.commit.ends_with("-dirty")) ++dirty[result.commit];
  }
  for (const auto& [commit, count] : dirty)
    notes.push_back(Concat(count, count == 1 ? " result is" : " results are",
                           " from a working tree with changes, ", commit));
  std::map<std::string, std::map<std::pair<int64_t, int64_t>, std::string>> budgets;
  for (const PlannedRow& planned : rows) {
    if (planned.run->group != kTable) continue;
    const Config& config = planned.run->config;
    budgets[config.data.task][{config.train.steps, config.train.batch * config.train.accumulate}] +=
        " " + planned.row.row + ",";
  }
  for (const auto& [task, arms] : budgets) {
    if (arms.size() < 2) continue;
    std::string text = task + ": arms with another budget:";
    for (const auto& [budget, names] : arms)
      text += Concat(names, " ", budget.first, " steps of ", budget.second, " sequences;");
    notes.push_back(text.substr(0, text.size() - 1));
  }
  return notes;
}

template <class Field>
Json Distinct(const std::vector<Result>& results, Field field) {
  std::set<std::string> values;
  for (const Result& result : results) values.insert(field(result));
  values.erase("");
  return Json(values);
}

}  // namespace

Json SummaryJson(const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  const Summary summary = Summarise(values);
  return {{"mean", summary.mean},
          {"deviation", summary.deviation ? Json(*summary.deviation) : Json(nullptr)},
          {"values", values}};
}

Json ReportExperiments(const std::filesystem::path& folder, const std::string& tier) {
  const Places places{.experiments = folder, .runs = {}};
  const std::vector<ExperimentRun> runs = ReadTier(places, tier);
  const std::vector<Result> results = ReadResults(places.results(tier));
  const std::vector<PlannedRow> rows = PlannedRows(runs, results);
  const std::filesystem::path beside = places.results(tier).parent_path();
  size_t done = 0;
  for (const PlannedRow& planned : rows) done += planned.row.results.size();
  std::filesystem::path place = std::filesystem::absolute(folder).lexically_normal();
  if (!place.has_filename()) place = place.parent_path();  // of "experiments/"
  Json json = {{"folder", place.filename().string()},      // no path of the machine
               {"tier", tier},
               {"runs_planned", runs.size()},
               {"runs_done", done}};
  json["commits"] = Distinct(results, [](const Result& r) { return r.commit; });
  json["processors"] = Distinct(results, [](const Result& r) { return r.processor; });
  json["missing"] = Missing(rows);
  json["notes"] = Notes(runs, rows, results);
  std::vector<std::string> tasks;
  std::map<std::string, std::vector<PlannedRow>> tables;
  std::vector<PlannedRow> table, ablations, trials;
  for (const PlannedRow& planned : rows) {
    const std::string& task = planned.run->config.data.task;
    // A tier without a table of its own, as `smoke`, has its rows for one.
    if (planned.run->group == "ablation") {
      ablations.push_back(planned);
    } else if (planned.run->group == kRecipe) {
      trials.push_back(planned);
    } else {
      if (!tables.contains(task)) tasks.push_back(task);
      tables[task].push_back(planned);
      table.push_back(planned);
    }
  }
  std::vector<ExperimentRun> trial_runs;
  std::vector<Result> trial_results;
  if (tier != kRecipe && std::filesystem::is_directory(folder / kRecipe)) {
    trial_runs = ReadTier(places, kRecipe);
    trial_results = ReadResults(places.results(kRecipe));
    for (const PlannedRow& trial : PlannedRows(trial_runs, trial_results)) trials.push_back(trial);
  }
  json["tasks"] = Json::array();
  for (const std::string& task : tasks)
    json["tasks"].push_back(TaskJson(task, tables[task], beside));
  json["ladder"] = Ladder(beside / "ladder.json");
  json["ablations"] = Ablations(ablations);
  json["trials"] = Trials(trials);
  json["step"] = TrainingStep(beside / "step.json");
  json["structure"] = Structure(table);
  return json;
}

}  // namespace hkt::report
