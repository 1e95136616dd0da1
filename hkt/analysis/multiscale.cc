#include "hkt/analysis/multiscale.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "hkt/analysis/decomposition.h"
#include "hkt/analysis/least_squares.h"
#include "hkt/analysis/tail.h"
#include "hkt/base/random.h"

namespace hkt::analysis {
namespace {

at::Tensor View(const std::vector<double>& values, at::IntArrayRef shape) {
  return at::from_blob(const_cast<double*>(values.data()), shape, at::TensorOptions(at::kDouble));
}

// Mean step of log sqrt(E_H) between neighbours among the first rows.
double MeanLogStep(const std::vector<double>& hierarchical) {
  const size_t rows = std::min<size_t>(5, hierarchical.size());
  if (rows < 2) return std::numeric_limits<double>::quiet_NaN();
  return std::log(hierarchical[rows - 1] / hierarchical[0]) / 2 / static_cast<double>(rows - 1);
}

}  // namespace

MultiscaleReport MeasureMultiscale(const data::MultiscalePairs& pairs, double off) {
  const data::MultiscaleOptions& o = pairs.options;
  const int64_t levels = o.levels;
  const at::Tensor columns =
      at::cat({View(pairs.decimated, {o.pairs, levels}), View(pairs.full, {o.pairs, levels}),
               View(pairs.target, {o.pairs, 1})},
              1);
  RowStack stack(columns.size(1));
  stack.Add(columns);
  const at::Tensor means = stack.Means();
  const at::Tensor decimated = means.narrow(1, 0, levels), full = means.narrow(1, levels, levels);
  const at::Tensor target = means.select(1, 2 * levels);

  std::vector<double> terms, theta;
  Random random({o.seed, 0x7468657461u});
  for (int64_t l = 0; l < levels; ++l) {
    const auto at = static_cast<size_t>(l);
    terms.push_back(pairs.coefficients[at] *
                    std::sqrt(full.select(1, l).square().sum().item<double>()));
    theta.push_back(pairs.coefficients[at] * std::pow(pairs.phibar[at], 2) + off * random.Normal());
  }
  const std::vector<double> bounds = TailBounds(terms);
  const double one_token = o.same_token ? 2 * (1 + data::Gamma(o)) : 1;

  MultiscaleReport report{.options = o};
  std::vector<double> measured, closed;  // E_H while some of the target is left
  for (int64_t L = 1; L <= levels; ++L) {
    const at::Tensor u = decimated.narrow(1, 0, L), v = full.narrow(1, 0, L);
    const std::vector<double> used(theta.begin(), theta.begin() + L);
    const ErrorTerms terms_of_L = Decompose(target, at::mv(u, at::tensor(used, at::kDouble)), u, v);
    MultiscaleRow row{.levels = L,
                      .hierarchical = terms_of_L.hierarchical,
                      .quantisation = terms_of_L.quantisation,
                      .optimisation = terms_of_L.optimisation,
                      .total = terms_of_L.total,
                      .gap = terms_of_L.gap(),
                      .tail_bound = bounds[static_cast<size_t>(L)]};
    for (int64_t l = 0; l < levels; ++l) {
      const auto at = static_cast<size_t>(l);
      const double a = pairs.coefficients[at], phibar = pairs.phibar[at];
      if (l >= L) {
        row.hierarchical_closed += one_token * a * a;
      } else {
        row.quantisation_closed += one_token * a * a * (1 - std::pow(phibar, 4));
        row.optimisation_closed += one_token * std::pow(a * phibar * phibar - theta[at], 2);
      }
    }
    if (L < levels) {
      measured.push_back(row.hierarchical);
      closed.push_back(row.hierarchical_closed);
    }
    report.rows.push_back(row);
  }
  report.log_slope = MeanLogStep(measured);
  report.log_slope_closed = MeanLogStep(closed);
  return report;
}

nlohmann::ordered_json ToJson(const MultiscaleReport& report) {
  nlohmann::ordered_json json = {{"gamma", data::Gamma(report.options)},
                                 {"same_token", report.options.same_token},
                                 {"log_slope", report.log_slope},
                                 {"log_slope_closed", report.log_slope_closed}};
  json["rows"] = nlohmann::ordered_json::array();
  for (const MultiscaleRow& row : report.rows) {
    json["rows"].push_back({{"levels", row.levels},
                            {"hierarchical", row.hierarchical},
                            {"hierarchical_closed", row.hierarchical_closed},
                            {"quantisation", row.quantisation},
                            {"quantisation_closed", row.quantisation_closed},
                            {"optimisation", row.optimisation},
                            {"optimisation_closed", row.optimisation_closed},
                            {"total", row.total},
                            {"gap", row.gap},
                            {"tail_bound", row.tail_bound}});
  }
  return json;
}

}  // namespace hkt::analysis
