#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "hkt/analysis/truncation.h"

namespace hkt::analysis {

// The decomposition on a real pyramid, convolutions, LayerNorm and GELU with random weights, in
// place of fields that are made to order: all causal pairs of short autoregressive sequences, one
// head, and a target whose level terms have the sizes rho^l.
struct PyramidTargetOptions {
  int64_t levels = 5;
  int64_t stride = 2;
  double rho = 0.6;
  int64_t d = 4;
  int64_t tokens = 32;  // of a sequence
  int64_t sequences = 24;
  double correlation = 0.9;  // of neighbouring tokens
  uint64_t seed = 1;
};

HeadTruncations MeasurePyramidTarget(const PyramidTargetOptions& options);

nlohmann::ordered_json ToJson(const HeadTruncations& head);

}  // namespace hkt::analysis
