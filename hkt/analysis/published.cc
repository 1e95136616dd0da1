#include "hkt/analysis/published.h"

#include <cmath>

namespace hkt::analysis {
namespace {

Json Figure(const char* name, const char* subject, const char* published, Json value, Json here,
            const char* note) {
  return {{"name", name},
          {"subject", subject},
          {"published", published},
          {"value", std::move(value)},
          {"here", std::move(here)},
          {"note", note}};
}

// Mean of `key` over the rows document[subject][list]; null without any.
Json Mean(const Json& document, const char* subject, const char* list, const char* key) {
  double sum = 0, count = 0;
  if (!document.contains(subject) || !document[subject].contains(list)) return nullptr;
  for (const Json& row : document[subject][list]) {
    if (row.contains("level") && row["level"].is_null()) continue;  // the fused score
    if (!row[key].is_number() || !std::isfinite(row[key].get<double>())) continue;
    sum += row[key].get<double>();
    ++count;
  }
  return count > 0 ? Json(sum / count) : Json(nullptr);
}

// The accuracy's change without any coarse level: the last row.
Json WithoutHierarchy(const Json& document) {
  if (!document.contains("levels_removed")) return nullptr;
  return document["levels_removed"]["rows"].back()["change"];
}

}  // namespace

Json PublishedFigures(const Json& document) {
  Json figures = Json::array();
  figures.push_back(Figure(
      "negative_share", "kernel",
      "about 50 % of the eigenvalues of the score matrices are negative", 0.5,
      Mean(document, "kernel", "levels", "negative_share"),
      "With 2 D <= d and projections of full rank exactly half of a head's nonzero eigenvalues are "
      "negative, trained or not (Sylvester's law of inertia): the share says nothing about "
      "training. "
      "The negative share of the energy, the trace and the locality preference do."));
  figures.push_back(
      Figure("antisymmetric_share", "direction", "the antisymmetric share rises with the level",
             nullptr, Mean(document, "direction", "trend", "slope_z"),
             "Independent projections give (d - 1) / (2 d), almost one half, at every level before "
             "training. Ours is the slope of z, standard deviations from that value, a level; "
             "above 0 it rises. One run is one seed."));
  figures.push_back(
      Figure("hierarchy_removed", "levels_removed",
             "taking the hierarchy away costs 18.4 %, task and unit not said", -0.184,
             WithoutHierarchy(document),
             "The ablation is not defined in what is known of the paper: points or relative, which "
             "task, whether the model was trained again. Ours takes the coarse levels out of the "
             "trained model, without training it again, in points of accuracy."));
  figures.push_back(Figure(
      "score_kurtosis", "kurtosis", "kurtosis about 33", 33.0,
      Mean(document, "kurtosis", "scores", "kurtosis"),
      "It cannot be Mardia's kappa of a representation of width 64, which is at least 64^2 = "
      "4096 and 4224 for a Gaussian. We read it as the kurtosis of the scores (Gaussian "
      "scores: 3; Gaussian tokens: 3 to 9), a correction of ten times the Gaussian term. Ours is "
      "the mean over layers, heads and levels, each sequence for itself."));
  return figures;
}

}  // namespace hkt::analysis
