#include "cli/analyze_error_tables.h"

#include <map>

namespace hkt::cli {
namespace {

std::string Yes(const Json& value) { return value.get<bool>() ? "yes" : "no"; }

}  // namespace

void PrintApproximation(const Json& approximation) {
  const bool attention = approximation["weights"] == "attention";
  Title(
      "approximation: what the first L levels miss of the head's own undecimated scores",
      "Shares of the target's square: lacking levels, decimation, weights that are not the best of "
      "these levels.\nTail bounds the hierarchical share, cell the quantisation share. Fit: finite-"
      "sample part of a fit on a quarter, half and all of the training sequences.");
  std::map<std::pair<int64_t, int64_t>, double> targets;
  for (const Json& row : approximation["heads"])
    targets[{row["layer"].get<int64_t>(), row["head"].get<int64_t>()}] =
        row["target"].get<double>();
  std::vector<std::string> names = {"head",         "L",       "hierarchical", "quantisation",
                                    "optimisation", "sum",     "total",        "tail",
                                    "cell",         "fit 1/4", "1/2",          "all"};
  if (attention) names.insert(names.end(), {"KL", "total/2"});
  Table table(names);
  for (const Json& row : approximation["truncations"]) {
    const double target = targets[{row["layer"].get<int64_t>(), row["head"].get<int64_t>()}];
    const auto share = [&](const Json& value) {
      return value.is_null() ? "-" : Number(value.get<double>() / target, "%.5f");
    };
    std::vector<std::string> cells = {Head(row),
                                      Count(row["levels"]),
                                      share(row["hierarchical"]),
                                      share(row["quantisation"]),
                                      share(row["optimisation"]),
                                      share(row["sum"]),
                                      share(row["total"]),
                                      share(row["tail_bound"]),
                                      share(row.value("quantisation_bound", Json()))};
    for (size_t i = 0; i < 3; ++i) {
      const Json& fits = row["fits"];
      cells.push_back(i < fits.size() ? share(fits[i]["finite_sample"]) : "-");
    }
    if (attention) {
      cells.push_back(Number(row["attention"]["kl"], "%.5f"));
      cells.push_back(Number(row["attention"]["half_total"], "%.5f"));
    }
    table.Add(cells);
  }
  table.Print();
  std::printf(
      "  sum = total: %s (largest gap %s of it); every bound holds: %s; decay of a level's size:",
      Yes(approximation["identity_holds"]).c_str(),
      Number(approximation["identity_gap"], "%.0e").c_str(),
      Yes(approximation["bounds_hold"]).c_str());
  for (const Json& row : approximation["heads"])
    std::printf(" %s", Number(row["decay_rate"], "%.2f").c_str());
  std::printf("\n");
}

void PrintKurtosis(const Json& kurtosis) {
  Title("kurtosis: of each level's representation (Mardia)",
        "Gamma: kappa over its Gaussian value, less 1, with a standard error over sequences. "
        "Ridge: 1 "
        "+ gamma under a small and a\nlarge ridge; of elliptical rows all three agree.");
  Table levels({"layer", "level", "rows", "rank", "kappa", "Gaussian", "gamma", "+-", "ridge 1e-4",
                "ridge 1", "flags"});
  for (const Json& row : kurtosis["levels"]) {
    const std::string flags = std::string(row["saturated"].get<bool>() ? "saturated " : "") +
                              (row["too_few"].get<bool>() ? "too few" : "");
    levels.Add({Count(row["layer"]), Count(row["level"]), Count(row["rows"]), Count(row["rank"]),
                Number(row["kappa"], "%.0f"), Number(row["gaussian"], "%.0f"), Number(row["gamma"]),
                Number(row["bootstrap_se"].get<double>() / row["gaussian"].get<double>()),
                Number(row["ridge_factor"][1]), Number(row["ridge_factor"][2]),
                flags.empty() ? "-" : flags});
  }
  levels.Print();
  Title(
      "kurtosis: of the scores, and what Mardia's predicts",
      "Scores: E s^4 over (E s^2)^2, 3 for a Gaussian, mean over sequences; pooled over them; what "
      "independent elliptical tokens would\ngive. Eta: E (x^T M x)^2 within a cell over its "
      "Gaussian "
      "value, less 1; the correction predicts gamma.");
  Table scores(
      {"head", "level", "scores", "median", "pooled", "elliptical", "r_eff", "gamma", "eta"});
  std::map<std::string, const Json*> forms;
  for (const Json& row : kurtosis["forms"]) forms[Head(row) + "/" + Count(row["level"])] = &row;
  for (const Json& row : kurtosis["scores"]) {
    if (row["level"].is_null()) {
      scores.Add({Head(row), "fused", Number(row["kurtosis"], "%.2f"),
                  Number(row["median"], "%.2f"), Number(row["pooled"], "%.2f"), "-", "-", "-",
                  "-"});
      continue;
    }
    const Json& form = *forms.at(Head(row) + "/" + Count(row["level"]));
    scores.Add({Head(row), Count(row["level"]), Number(row["kurtosis"], "%.2f"),
                Number(row["median"], "%.2f"), Number(row["pooled"], "%.2f"),
                Number(row["independent_elliptical"], "%.2f"),
                Number(row["effective_rank"], "%.1f"), Number(form["gamma"]), Number(form["eta"])});
  }
  scores.Print();
}

}  // namespace hkt::cli
