// report.md: the experiments' tables as Markdown.

#include <cmath>
#include <cstdio>

#include "hkt/report/report.h"

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

void AddTask(const Json& task, std::string& out) {
  out += "\n### " + Cell(task["title"].get<std::string>()) + "\n\n";
  out +=
      "| model | levels | convolution | seeds | test accuracy, % | published, % | distance | "
      "parameters | processor time a run |\n|---|---|---|---|---|---|---|---|---|\n";
  for (const Json& row : task["rows"]) {
    out +=
        "| " + Cell(row["row"].get<std::string>()) + " | " + row["levels"].dump() + " | " +
        (row["convolution"].get<bool>() ? "yes" : "no") + " | " + Seeds(row) + " | " +
        MeanAndDeviation(row["test"]) + " | " +
        (row["published"].is_null() ? kNone : MeanAndDeviation(row["published"])) + " | " +
        Points(row["distance"]) + " | " +
        (row["parameters"].is_null() ? kNone : Format("%.0f", row["parameters"].get<double>())) +
        " | " +
        (row["cpu_seconds"].is_null() ? kNone
                                      : Format("%.1f min", row["cpu_seconds"].get<double>() / 60)) +
        " |\n";
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
}

}  // namespace

std::string MakeMarkdown(const Json& document) {
  const Json& experiments = document["experiments"];
  std::string out = "<!-- Written by hkt report --experiments --markdown; do not edit. -->\n\n";
  out += "Tier " + Cell(experiments["tier"].get<std::string>()) + ": " +
         experiments["runs_done"].dump() + " of " + experiments["runs_planned"].dump() +
         " runs. Accuracy of the best-on-validation weights on the test split, evaluated once: "
         "mean ± sample standard deviation over seeds. A verdict is that of the 95 % t-interval.\n";
  for (const Json& task : experiments["tasks"]) AddTask(task, out);
  if (!experiments["missing"].empty()) {
    out += "\nMissing:";
    for (const Json& one : experiments["missing"])
      out += " " + Cell(one["name"].get<std::string>()) + " (seeds " + Cell(one["seeds"].dump()) +
             "),";
    out.back() = '.';
    out += "\n";
  }
  return out;
}

}  // namespace hkt::report
