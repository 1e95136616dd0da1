// report.md: the experiments' tables as Markdown.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "hkt/report/report.h"
#include "hkt/report/statistics.h"

namespace hkt::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kNone = "\u2013";

std::string Format(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// A share as percent, a difference as percentage points with its sign.
std::string Percent(const Json& share) {
  return share.is_null() ? kNone : Format("%.2f", 100 * share.get<double>());
}
std::string Points(const Json& share) {
  return share.is_null() ? kNone : Format("%+.2f", 100 * share.get<double>());
}

std::string MeanAndDeviation(const Json& summary) {
  if (summary.is_null()) return "missing";
  std::string text = Percent(summary["mean"]);
  if (!summary["deviation"].is_null()) text += " ± " + Percent(summary["deviation"]);
  return text;
}

std::string Minutes(const Json& seconds) {
  return seconds.is_null() ? kNone : Format("%.1f min", seconds.get<double>() / 60);
}

// Text of a file in a cell: no mark of Markdown or HTML is one.
std::string Cell(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '\n' || c == '\r') {
      result += ' ';
    } else {
      if (std::string_view("|\\`*_[]&").find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
  }
  return result;
}

std::string Seeds(const Json& row) {
  const size_t done = row["seeds"].size();
  const size_t planned = row["seeds_planned"].is_number() ? row["seeds_planned"].get<size_t>()
                                                          : row["seeds_planned"].size();
  return done == planned ? std::to_string(done)
                         : std::to_string(done) + " of " + std::to_string(planned);
}

std::string IntervalText(const Json& contrast) {
  if (contrast["low"].is_null()) return kNone;
  return "[" + Points(contrast["low"]) + ", " + Points(contrast["high"]) + "]";
}

std::string PValues(const Json& tests) {
  std::string text;
  for (const Json& test : tests) {
    const double p = test["p"].get<double>();
    text += (text.empty() ? "" : ", ") + (p < 0.0001 ? "< 0.0001" : Format("%.4f", p));
    if (test["method"] == "exact binomial") text += " (exact)";
  }
  return text.empty() ? kNone : text;
}

void AddFloors(const Json& task, std::string& out) {
  if (task["floors"].is_null() || task["floors"].empty()) return;
  out += "\nWithout a model (`hkt data floors`), test accuracy:";
  for (const Json& floor : task["floors"])
    out += " " + Cell(floor["floor"].get<std::string>()) + " " + Percent(floor["test"]) + " %,";
  out.back() = '.';
  out += "\n";
}

void AddTask(const Json& task, std::string& out) {
  out += "\n## " + Cell(task["title"].get<std::string>()) + "\n\n";
  out +=
      "| model | levels | convolution | seeds | test accuracy, % | published, % | distance | "
      "parameters | processor time a run |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Json& row : task["rows"]) {
    out += "| " + Cell(row["row"].get<std::string>()) + " | " + row["levels"].dump() + " | " +
           (row["convolution"].get<bool>() ? "yes" : "no") + " | " + Seeds(row) + " | " +
           MeanAndDeviation(row["test"]) + " | " +
           (row["published"].is_null() ? kNone : MeanAndDeviation(row["published"])) + " | " +
           Points(row["distance"]) + " | " +
           (row["parameters"].is_null() ? kNone : Format("%.0f", row["parameters"].get<double>())) +
           " | " + Minutes(row["cpu_seconds"]) + " |\n";
  }
  if (!task["comparisons"].empty()) {
    out +=
        "\n| difference over common seeds | seeds | points | 95 % interval | verdict | published "
        "| McNemar p, a seed |\n|---|---|---|---|---|---|---|\n";
    for (const Json& one : task["comparisons"]) {
      out += "| " + Cell(one["label"].get<std::string>()) + " | " + Seeds(one) + " | " +
             Points(one["mean"]) + " | " + IntervalText(one) + " | " +
             one["verdict"].get<std::string>() + " | " + Points(one["published_gap"]) + " | " +
             PValues(one["mcnemar"]) + " |\n";
    }
  }
  if (!task["effects"].empty()) {
    out += "\n| effect | seeds | points | 95 % interval | verdict |\n|---|---|---|---|---|\n";
    for (const Json& one : task["effects"]) {
      out += "| " + Cell(one["label"].get<std::string>()) + " | " + Seeds(one) + " | " +
             Points(one["mean"]) + " | " + IntervalText(one) + " | " +
             one["verdict"].get<std::string>() + " |\n";
    }
  }
  AddFloors(task, out);
}

void AddAblations(const Json& ablations, std::string& out) {
  if (ablations.empty()) return;
  out +=
      "\n## Ablations\n\nEach beside the row that differs least from all others of its kind, at "
      "the same budget; one seed, so differences are of single runs.\n\n| experiment | seeds | "
      "test "
      "accuracy, % | difference, points | McNemar p, a seed | parameters | processor time a run "
      "|\n|---|---|---|---|---|---|---|\n";
  for (const Json& one : ablations) {
    const Json& comparison = one["comparison"];
    out += "| " + Cell(one["row"].get<std::string>()) + " (" +
           Cell(one["task"].get<std::string>()) + ") | " + Seeds(one) + " | " +
           MeanAndDeviation(one["test"]) + " | " +
           (comparison.is_null() ? "reference" : Points(comparison["mean"])) + " | " +
           (comparison.is_null() ? kNone : PValues(comparison["mcnemar"])) + " | " +
           (one["parameters"].is_null() ? kNone : one["parameters"].dump()) + " | " +
           Minutes(one["cpu_seconds"]) + " |\n";
  }
}

void AddTrials(const Json& trials, std::string& out) {
  if (trials.empty()) return;
  out +=
      "\n## Trials of the recipe\n\nChosen by validation.\n\n| trial | best validation accuracy, "
      "% "
      "| processor time |\n|---|---|---|\n";
  for (const Json& one : trials)
    out += "| " + Cell(one["name"].get<std::string>()) + " | " + MeanAndDeviation(one["best"]) +
           " | " + Minutes(one["cpu_seconds"]) + " |\n";
}

void AddStep(const Json& step, std::string& out) {
  if (step.is_null()) return;
  out += "\n## Cost of a training step\n\nT = " + step["seq_len"].dump() +
         (step.contains("processor") ? ", " + Cell(step["processor"].get<std::string>()) : "") +
         "; the published factor, of the score products alone, is 1.3125.\n\n| arm | ms | times "
         "MHA's | memory, MiB | times MHA's | parameters |\n|---|---|---|---|---|---|\n";
  const auto number = [](const char* format, const Json& value, double unit) {
    return value.is_null() ? kNone : Format(format, value.get<double>() / unit);
  };
  for (const Json& arm : step["arms"])
    out += "| " + Cell(arm["arm"].get<std::string>()) + " | " +
           number("%.1f", arm["seconds"], 1e-3) + " | " + number("%.3f", arm["ratio"], 1) + " | " +
           number("%.0f", arm["memory_bytes"], 1 << 20) + " | " +
           number("%.3f", arm["memory_ratio"], 1) + " | " + number("%.0f", arm["parameters"], 1) +
           " |\n";
}

// Means over all runs of HKT, a level after the other.
std::string ByLevel(const Json& groups, const std::string& key, const char* when) {
  std::vector<std::vector<double>> levels;
  for (const Json& group : groups) {
    if (group["row"] != "HKT") continue;
    for (const Json& claim : group["claims"]) {
      if (claim["key"] != key) continue;
      for (const Json& row : claim["levels"]) {
        if (row[when].is_null()) continue;
        levels.resize(std::max(levels.size(), row["level"].get<size_t>() + 1));
        for (const Json& value : row[when]["values"])
          levels[row["level"].get<size_t>()].push_back(value.get<double>());
      }
    }
  }
  std::string text;
  for (const std::vector<double>& values : levels) {
    text += text.empty() ? "" : " / ";
    text += values.empty() ? kNone : Format("%.3g", Summarise(values).mean);
  }
  return text.empty() ? kNone : text;
}

void AddStructure(const Json& structure, std::string& out) {
  if (structure.is_null()) return;
  int64_t runs = 0;
  for (const Json& group : structure["groups"])
    if (group["row"] == "HKT") runs += group["runs"].get<int64_t>();
  out +=
      "\n## Trained models\n\nMeans over " + std::to_string(runs) +
      " HKT runs, their layers and heads, at levels 0 / 1 / 2.\n\n| figure | published | trained "
      "| before training | |\n|---|---|---|---|---|\n";
  for (const Json& claim : structure["claims"]) {
    const std::string published = claim["published"].get<std::string>();
    out += "| " + Cell(claim["title"].get<std::string>()) + " | " +
           (published.empty() ? kNone : Cell(published)) + " | " +
           ByLevel(structure["groups"], claim["key"], "trained") + " | " +
           ByLevel(structure["groups"], claim["key"], "initial") + " | " +
           Cell(claim["note"].get<std::string>()) + " |\n";
  }
}

}  // namespace

std::string MakeMarkdown(const Json& document) {
  const Json& experiments = document["experiments"];
  std::string out = "<!-- Written by hkt report --experiments --markdown; do not edit. -->\n\n";
  out += "# Results of the tier " + Cell(experiments["tier"].get<std::string>()) + "\n\n" +
         experiments["runs_done"].dump() + " of " + experiments["runs_planned"].dump() +
         " runs. Accuracy of the best-on-validation weights on the test split, evaluated once: "
         "mean ± sample standard deviation over seeds. A verdict is that of the 95 % t-interval "
         "over seeds.\n";
  for (const auto& [key, what] : {std::pair{"processors", "Processors"}, {"commits", "Commits"}}) {
    if (experiments[key].empty()) continue;
    out += std::string("\n") + what + ":";
    for (const Json& one : experiments[key]) out += " " + Cell(one.get<std::string>()) + ",";
    out.back() = '.';
    out += "\n";
  }
  if (!experiments["missing"].empty()) {
    out += "\nMissing:";
    for (const Json& one : experiments["missing"])
      out += " " + Cell(one["name"].get<std::string>()) + " (seeds " + Cell(one["seeds"].dump()) +
             "),";
    out.back() = '.';
    out += "\n";
  }
  if (!experiments["notes"].empty()) out += "\nTo be read with care:\n\n";
  for (const Json& note : experiments["notes"]) out += "- " + Cell(note.get<std::string>()) + "\n";
  for (const Json& task : experiments["tasks"]) AddTask(task, out);
  AddAblations(experiments["ablations"], out);
  AddStep(experiments["step"], out);
  AddStructure(experiments["structure"], out);
  AddTrials(experiments["trials"], out);
  return out;
}

}  // namespace hkt::report
