#pragma once

#include "hkt/analysis/subject.h"

namespace hkt::analysis {

// The paper's figures that the analysis stands beside, each with what it can and cannot mean
// (theory.md 2.5, 3.5g; the hypotheses behind them are not known here). `document` is the analysis
// so far. A list of
//   name, subject (the key of `document` that it belongs to), published (what was said), value (as
//   a number, null where only a direction is known), here (ours of this run, null without the
//   subject), note.
Json PublishedFigures(const Json& document);

}  // namespace hkt::analysis
