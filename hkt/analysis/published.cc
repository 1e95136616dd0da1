#include "hkt/analysis/published.h"

namespace hkt::analysis {
namespace {

Json Figure(const char* name, Json value, const char* published, const char* note) {
  return {{"name", name}, {"value", std::move(value)}, {"published", published}, {"note", note}};
}

}  // namespace

Json PublishedFigures() {
  return Json::array(
      {Figure("negative_share", 0.5,
              "about 50 % of the eigenvalues of the score matrices are negative",
              "With 2 D <= d and projections of full rank exactly half of a head's nonzero "
              "eigenvalues are negative, trained or not (Sylvester's law of inertia): the share "
              "says nothing about training. The share of the energy, tr(M_s) and the locality "
              "preference do."),
       Figure("antisymmetric_share", nullptr, "the antisymmetric share rises with the level",
              "Independent projections give (d - 1) / (2 d), almost one half, at every level "
              "before training. A rise is a rise of the z-scores over levels, heads and seeds, "
              "not of the share alone."),
       Figure("score_kurtosis", 33.0, "kurtosis about 33",
              "It cannot be Mardia's kappa of a representation of width 64, which is at least "
              "64^2 = 4096 and 4224 for a Gaussian. We read it as the kurtosis of the scores "
              "(Gaussian scores: 3; Gaussian tokens: 3 to 9), a correction of ten times the "
              "Gaussian term."),
       Figure("hierarchy_removed", -0.184,
              "taking the hierarchy away costs 18.4 %, task and unit not said",
              "The ablation is not defined in what is known of the paper: percentage points or "
              "relative, which task, whether the model was trained again. Ours takes levels out of "
              "the trained model, without training it again.")});
}

}  // namespace hkt::analysis
