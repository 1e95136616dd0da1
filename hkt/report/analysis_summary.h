#pragma once

#include "hkt/report/experiment.h"

namespace hkt::report {

// What of analysis.json (docs/analyze.md) goes into a result: "heads", a row a layer and head with
// a list over levels of each figure; "levels", the same figures' means over layers and heads, and
// "levels_initial", those before training; "levels_removed". A figure that is not defined is null,
// and a subject that was passed over (rotary models) is left out.
Json SummarizeAnalysis(const Json& analysis);

}  // namespace hkt::report
