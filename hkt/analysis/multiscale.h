#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "hkt/data/multiscale.h"

// The error decomposition measured on the synthetic target, beside its closed forms
// (docs/theory.md, 3.6).

namespace hkt::analysis {

struct MultiscaleRow {
  int64_t levels = 0;  // L of the model: it has St_l and S_l for l < L
  double hierarchical = 0, quantisation = 0, optimisation = 0, total = 0;
  double gap = 0;         // of the identity, relative
  double tail_bound = 0;  // (sum_{l >= L} rho^l |St_l|)^2, measured norms
  // sum_{l >= L} rho^2l, sum_{l < L} rho^2l (1 - phibar_l^4), sum_{l < L} (rho^l phibar_l^2 -
  // theta_l)^2; with one token in place of two the first is 2 (1 + gamma) times that.
  double hierarchical_closed = 0, quantisation_closed = 0, optimisation_closed = 0;
};

struct MultiscaleReport {
  data::MultiscaleOptions options = {};
  std::vector<MultiscaleRow> rows = {};  // L = 1 … levels
  // Mean slope of log sqrt(E_H) on L, over L = 1 … 5 or all that there are, and its closed form;
  // log rho when the tail is long. NaN with fewer than 3 levels.
  double log_slope = 0, log_slope_closed = 0;
};

// The model of L levels is sum_{l < L} theta_l S_l with theta_l = rho^l phibar_l^2 (the best there
// is) + `off` times a normal number of the data's seed.
MultiscaleReport MeasureMultiscale(const data::MultiscalePairs& pairs, double off = 0.05);

nlohmann::ordered_json ToJson(const MultiscaleReport& report);

}  // namespace hkt::analysis
