// Rows beside the table: ablations and the trials of the recipe.

#include <algorithm>
#include <map>
#include <set>

#include "hkt/io/config_json.h"
#include "hkt/report/experiments_report.h"
#include "hkt/report/statistics.h"

namespace hkt::report {
namespace {

using Json = nlohmann::ordered_json;

// What tells no model from another: evaluation, logs, and the seed.
const std::set<std::string> kNotOfTheModel = {"seed",       "data",       "threads",
                                              "eval_every", "save_every", "keep_states",
                                              "log_every",  "max_time",   "tensorboard"};

// Options by which `config` differs from `reference`, with its own values.
Json Changes(const Json& config, const Json& reference) {
  Json changes = Json::object();
  for (const auto& [name, value] : config.items()) {
    if (!kNotOfTheModel.contains(name) && reference.value(name, Json()) != value)
      changes[name] = value;
  }
  return changes;
}

std::map<std::string, std::vector<const PlannedRow*>> ByTask(const std::vector<PlannedRow>& rows) {
  std::map<std::string, std::vector<const PlannedRow*>> tasks;
  for (const PlannedRow& row : rows) tasks[row.run->config.data.task].push_back(&row);
  return tasks;
}

Json ConfigOf(const PlannedRow& row) { return io::ToJson(row.run->config); }

// Rows of different lengths of training or of sequences have a reference each.
std::string Conditions(const PlannedRow& row) {
  const Config& config = row.run->config;
  return Concat(config.train.steps, " ", config.data.seq_len.value_or(0), " ", config.data.preset);
}

const PlannedRow* Reference(const std::vector<const PlannedRow*>& rows) {
  const PlannedRow* best = nullptr;
  size_t fewest = 0;
  for (const PlannedRow* candidate : rows) {
    size_t changes = 0;
    for (const PlannedRow* other : rows)
      changes += Changes(ConfigOf(*other), ConfigOf(*candidate)).size();
    if (best == nullptr || changes < fewest) {
      best = candidate;
      fewest = changes;
    }
  }
  return best;
}

Json Figures(const PlannedRow& planned) {
  std::vector<double> test, best, cpu;
  Json seeds = Json::array();
  int64_t examples = 0, validation_examples = 0;
  std::optional<int64_t> parameters;
  for (const Result* result : planned.row.results) {
    test.push_back(result->test_accuracy);
    best.push_back(result->best_accuracy);
    seeds.push_back(result->seed);
    if (result->cpu_seconds) cpu.push_back(*result->cpu_seconds);
    if (result->parameters) parameters = result->parameters;
    examples = result->test_examples;
    validation_examples = result->validation_examples;
  }
  const bool any = !test.empty();
  return {{"name", planned.row.name},
          {"row", planned.row.row},
          {"task", planned.run->config.data.task},
          {"note", planned.run->note},
          {"seeds_planned", planned.row.seeds},
          {"seeds", seeds},
          {"test", SummaryJson(test)},
          {"best", SummaryJson(best)},
          {"test_examples", any ? Json(examples) : Json(nullptr)},
          {"validation_examples", any ? Json(validation_examples) : Json(nullptr)},
          {"parameters", parameters ? Json(*parameters) : Json(nullptr)},
          {"cpu_seconds", cpu.empty() ? Json(nullptr) : Json(Summarise(cpu).mean)}};
}

}  // namespace

Json Ablations(const std::vector<PlannedRow>& rows) {
  Json list = Json::array();
  std::vector<std::string> order;
  std::map<std::string, std::vector<const PlannedRow*>> sets;
  for (const PlannedRow& row : rows) {
    const std::string key = row.run->config.data.task + " " + Conditions(row);
    if (!sets.contains(key)) order.push_back(key);
    sets[key].push_back(&row);
  }
  for (const std::string& key : order) {
    const PlannedRow* reference = Reference(sets[key]);
    for (const PlannedRow* planned : sets[key]) {
      Json entry = Figures(*planned);
      entry["is_reference"] = planned == reference;
      entry["reference"] = reference->row.name;
      entry["changes"] = Changes(ConfigOf(*planned), ConfigOf(*reference));
      entry["comparison"] = nullptr;
      if (planned != reference) {
        entry["comparison"] = Contrast({{&planned->row, 1}, {&reference->row, -1}});
        Json tests = Json::array();
        for (const Result* own : planned->row.results) {
          for (const Result* other : reference->row.results) {
            if (own->seed != other->seed) continue;
            Json test = {{"seed", own->seed}};
            test.update(McNemarJson(*own, *other));
            tests.push_back(test);
          }
        }
        entry["comparison"]["mcnemar"] = tests;
      }
      list.push_back(entry);
    }
  }
  return list;
}

Json Trials(const std::vector<PlannedRow>& rows) {
  Json list = Json::array();
  for (const auto& [task, trials] : ByTask(rows)) {
    std::set<std::string> varying;
    std::map<std::string, const PlannedRow*>
        first;  // of each model: what tells models apart is none
    for (const PlannedRow* trial : trials) {
      const PlannedRow* other = first.emplace(trial->run->config.model.model, trial).first->second;
      const Json changes = Changes(ConfigOf(*trial), ConfigOf(*other));
      for (const auto& [name, value] : changes.items()) varying.insert(name);
    }
    for (const PlannedRow* trial : trials) {
      Json entry = Figures(*trial);
      entry["options"] = Json::object();
      const Json config = ConfigOf(*trial);
      for (const std::string& name : varying) entry["options"][name] = config[name];
      list.push_back(entry);
    }
  }
  return list;
}

}  // namespace hkt::report
