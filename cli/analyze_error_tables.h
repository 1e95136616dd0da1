#pragma once

#include "cli/table.h"

namespace hkt::cli {

// The parts "approximation" and "kurtosis" of analysis.json.
void PrintApproximation(const Json& approximation);
void PrintKurtosis(const Json& kurtosis);

}  // namespace hkt::cli
