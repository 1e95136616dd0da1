#pragma once

#include "hkt/analysis/subject.h"

namespace hkt::analysis {

// The paper's figures that the analysis stands beside, each with what it can and cannot mean
// (theory.md 2.5, 3.5g; the hypotheses behind them are not known here): a list of name, value (a
// number, or null where only a direction is published), what was published and note.
Json PublishedFigures();

}  // namespace hkt::analysis
