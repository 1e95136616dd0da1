#pragma once

#include <string>
#include <vector>

#include "hkt/report/plan.h"

namespace hkt::report {

// Seconds that training still takes.
struct TimeLeft {
  double seconds = 0;
  int64_t unknown = 0;  // runs for which nothing like them was measured yet
};

// Of all runs that are not done, `jobs` side by side. A run's step takes what its own steps took;
// before its first, what those of the same row took with other seeds, else those of the same task
// with the same number of tokens a step. Evaluation counts as far as it lies within training.
TimeLeft EstimateTimeLeft(const std::vector<PlannedRun>& plan, int64_t jobs);

// "1:02:03", "2:03".
std::string FormatSeconds(double seconds);

}  // namespace hkt::report
