#include "cli/analyze_tables.h"

#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "cli/analyze_error_tables.h"
#include "cli/table.h"
#include "hkt/base/text.h"

namespace hkt::cli {
namespace {

using Json = nlohmann::ordered_json;

void PrintHeader(const Json& document) {
  const Json& shape = document["shape"];
  std::printf("%s on %s, %s weights", document["model"].get<std::string>().c_str(),
              document["task"].get<std::string>().c_str(),
              document["weights"]["kind"].get<std::string>().c_str());
  for (const auto& [key, name] : {std::pair("validation", "validation accuracy"),
                                  std::pair("overfit_batch", "accuracy on the one batch")}) {
    const Json point = document["weights"].value(key, Json());
    if (point.is_null()) continue;
    std::printf(" of step %s, %s %s", Count(point["step"]).c_str(), name,
                Percent(point["accuracy"], "%.2f %%").c_str());
  }
  std::printf("\n%s of %s of width %s, %s, stride %s; %s of the validation split\n",
              Counted(shape["layers"], "layer").c_str(), Counted(shape["heads"], "head").c_str(),
              Count(shape["head_width"]).c_str(), Counted(shape["levels"], "level").c_str(),
              Count(shape["stride"]).c_str(), Counted(document["sequences"], "sequence").c_str());
  for (const Json& skip : document["skipped"]) {
    std::printf("left out: %s, because %s\n", skip["subject"].get<std::string>().c_str(),
                skip["reason"].get<std::string>().c_str());
  }
}

void PrintKernel(const Json& kernel) {
  Title(
      "kernel: the symmetric part M_s of each form",
      "+ and -: eigenvalues above and below 0. Energy: share of sum mu^2 that is negative. Gram: "
      "the same on tokens.\nLocal: same-cell score less the mean, over the size of a score (LP).");
  Table table({"head", "level", "+", "-", "negative", "energy", "Gram", "Gram energy", "psd",
               "rank", "local"});
  for (const Json& row : kernel["levels"]) {
    table.Add({Head(row), Count(row["level"]), Count(row["positive"]), Count(row["negative"]),
               Percent(row["negative_share"]), Percent(row["negative_energy"]),
               Percent(row["gram_negative_share"]), Percent(row["gram_negative_energy"]),
               row["psd"].get<bool>() ? "yes" : "no",
               Count(row["rank"]) + "/" + Count(row["rank_bound"]),
               Number(row["locality_preference"])});
  }
  table.Print();
  Title("kernel: the Gram matrix of the sum of the levels",
        "Condition: every level psd, which makes G psd. Least eigenvalue beside its bound, rank "
        "beside its two bounds; means over sequences.");
  Table gram({"head", "condition", "negative", "energy", "least", "bound", "tokens", "rank",
              "bound", "sum"});
  for (const Json& row : kernel["gram"]) {
    gram.Add({Head(row), row["condition"].get<bool>() ? "yes" : "no",
              Percent(row["negative_share"]), Percent(row["negative_energy"]),
              Number(row["min_mean"], "%.3g"), Number(row["min_bound_mean"], "%.3g"),
              Number(row["tokens_mean"], "%.1f"), Number(row["rank_mean"], "%.1f"),
              Number(row["rank_bound_chain_mean"], "%.1f"),
              Number(row["rank_bound_sum_mean"], "%.1f")});
  }
  gram.Print();
}

void PrintDirection(const Json& direction) {
  Title("direction: the antisymmetric part M_a of each form",
        "Alpha: its share of the energy of M, beside what chance gives and how many standard "
        "deviations off it is.\nData: the same between tokens of this covariance. Pairs: share of "
        "the squared scores of token pairs that turns its sign with i and j.");
  Table table({"head", "level", "alpha", "chance", "z", "data", "pairs"});
  for (const Json& row : direction["levels"]) {
    table.Add({Head(row), Count(row["level"]), Number(row["alpha"], "%.4f"),
               Number(row["expected"], "%.4f"), Number(row["z"], "%+.2f"),
               Number(row["alpha_data"]), Percent(row["directional_share"])});
  }
  table.Print();
  Table trend({"head", "alpha a level", "z a level", "data a level", "rising", "pairs, fused"});
  for (size_t i = 0; i < direction["trend"].size(); ++i) {
    const Json& row = direction["trend"][i];
    trend.Add({Head(row), Number(row["slope_alpha"], "%+.4f"), Number(row["slope_z"], "%+.2f"),
               Number(row["slope_alpha_data"], "%+.4f"), row["rising"].get<bool>() ? "yes" : "no",
               Percent(direction["fused"][i]["directional_share"])});
  }
  trend.Print();
}

void PrintMixture(const Json& mixture) {
  Title("mixture: what each level contributes",
        "Weight: w of the fused score, lambda beta / sum. Variance: share of the fused scores' "
        "variance within rows.\nDistance: mean |i - j| in tokens, with that level alone.");
  Table table({"head", "level", "lambda", "beta", "weight", "variance", "distance"});
  for (const Json& row : mixture["levels"]) {
    table.Add({Head(row), Count(row["level"]), Number(row["lambda"]), Number(row["beta"]),
               Number(row["weight"]), Percent(row["variance_share"]),
               Number(row["distance_alone"], "%.1f")});
  }
  table.Print();
  Table heads({"head", "attention", "entropy, nats", "of uniform", "distance", "uniform"});
  for (const Json& row : mixture["heads"]) {
    heads.Add({Head(row), Percent(row["attention_share"]), Number(row["entropy"]),
               Percent(row["relative_entropy"]), Number(row["distance"], "%.1f"),
               Number(row["uniform_distance"], "%.1f")});
  }
  heads.Print();
}

void PrintRemoved(const Json& removed) {
  Title("levels removed, lambda renormalised",
        "Accuracy of the trained model, not trained again; the change with its standard error, "
        "paired.");
  Table table({"removed", "accuracy", "change", "+-", "other answers", "loss"});
  for (const Json& row : removed["rows"]) {
    std::string levels;
    for (const Json& l : row["removed"]) levels += (levels.empty() ? "" : ", ") + Count(l);
    table.Add({levels.empty() ? "none" : levels, Percent(row["accuracy"], "%.2f %%"),
               Percent(row["change"], "%+.2f"), Percent(row["change_standard_error"], "%.2f"),
               Percent(row["predictions_changed"]), Number(row["loss"], "%.4f")});
  }
  table.Print();
  std::printf("  %s of the validation split\n", Counted(removed["samples"], "sequence").c_str());
}

void PrintCost(const Json& cost) {
  Title("cost: multiply-adds of a layer forward, " + Count(cost["tokens"]) + " tokens",
        "Beside standard attention: one level, no gates.");
  Table table({"part", "standard", "this", "ratio", "causal standard", "causal this", "ratio"});
  for (size_t i = 0; i < cost["all_pairs"].size(); ++i) {
    const Json &all = cost["all_pairs"][i], &causal = cost["causal"][i];
    table.Add({all["part"].get<std::string>(), Big(all["standard"]), Big(all["this"]),
               Number(all["ratio"], "%.4f"), Big(causal["standard"]), Big(causal["this"]),
               Number(causal["ratio"], "%.4f")});
  }
  table.Print();
  std::printf(
      "  scores: %s of standard attention's, for any number of levels below %s; "
      "parameters of the layer: %s times\n",
      Number(cost["score_factor"], "%.4f").c_str(),
      Number(cost["score_factor_limit"], "%.4f").c_str(),
      Number(cost["parameters"]["ratio"], "%.2f").c_str());
}

void PrintExample(const Json& example) {
  const bool own = example["index"].is_null();  // --text
  const std::string name = own ? "the text" : "example " + Count(example["index"]);
  const std::string label =
      own ? "" : "label " + Printable(example["label"].get<std::string>()) + ", ";
  std::printf("\n%s: %s, %spredicted %s (%s); its matrices are in analysis.json", name.c_str(),
              Counted(example["length"], "token").c_str(), label.c_str(),
              Printable(example["predicted"].get<std::string>()).c_str(),
              Percent(example["probability"]).c_str());
  if (example.contains("exported")) {
    std::printf(", in full in %s", example["exported"]["folder"].get<std::string>().c_str());
  }
  std::printf("\n");
}

// What the paper says of the subject, ours, and what it can mean.
void PrintPublished(const Json& document, const std::string& subject) {
  for (const Json& figure : document["published"]) {
    if (figure["subject"] != subject) continue;
    const bool share = figure["name"] == "negative_share" || figure["name"] == "hierarchy_removed";
    std::printf("  Published: %s. Here: %s. %s\n", figure["published"].get<std::string>().c_str(),
                (share ? Percent(figure["here"]) : Number(figure["here"], "%.3g")).c_str(),
                figure["note"].get<std::string>().c_str());
  }
}

// Means over layers and heads of the figures that one compares, by name and level.
std::map<std::string, double> Summary(const Json& document) {
  std::map<std::string, std::pair<double, int64_t>> sums;
  const auto add = [&](const char* subject, const char* key, const char* name) {
    if (!document.contains(subject)) return;
    for (const Json& row : document[subject]["levels"]) {
      if (row[key].is_null()) continue;
      auto& [sum, count] = sums[std::string(name) + ", level " + Count(row["level"])];
      sum += row[key].get<double>();
      ++count;
    }
  };
  add("kernel", "negative_share", "negative eigenvalues");
  add("kernel", "negative_energy", "negative energy");
  add("kernel", "locality_preference", "local preference");
  add("direction", "alpha", "alpha");
  add("direction", "z", "alpha, z");
  add("direction", "alpha_data", "alpha on data");
  add("mixture", "weight", "weight");
  add("mixture", "variance_share", "variance share");
  std::map<std::string, double> means;
  for (const auto& [name, sum] : sums) means[name] = sum.first / static_cast<double>(sum.second);
  return means;
}

void PrintBeside(const Json& document) {
  std::vector<std::pair<const char*, const Json*>> columns = {{"this run", &document}};
  for (const char* key : {"initial", "compare"})
    if (document.contains(key)) columns.emplace_back(key, &document[key]);
  if (columns.size() == 1) return;
  Title("side by side: means over layers and heads",
        "Initial: the same model before training. Compare: the other run.");
  std::vector<std::string> names = {"figure"};
  std::map<std::string, std::vector<std::string>> rows;
  for (size_t i = 0; i < columns.size(); ++i) {
    names.emplace_back(columns[i].first);
    for (const auto& [name, value] : Summary(*columns[i].second)) {
      auto& row = rows[name];
      row.resize(columns.size(), "-");
      row[i] = Number(value, "%.4f");
    }
  }
  Table table(names);
  for (auto& [name, row] : rows) {
    row.insert(row.begin(), name);
    table.Add(row);
  }
  table.Print();
}

}  // namespace

void PrintAnalysis(const Json& document) {
  PrintHeader(document);
  const std::vector<std::pair<const char*, void (*)(const Json&)>> parts = {
      {"kernel", PrintKernel},
      {"direction", PrintDirection},
      {"approximation", PrintApproximation},
      {"kurtosis", PrintKurtosis},
      {"mixture", PrintMixture},
      {"levels_removed", PrintRemoved},
      {"cost", PrintCost},
      {"example", PrintExample}};
  for (const auto& [key, print] : parts) {
    if (!document.contains(key)) continue;
    print(document[key]);
    PrintPublished(document, key);
  }
  PrintBeside(document);
}

}  // namespace hkt::cli
