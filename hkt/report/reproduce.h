#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hkt/report/run_job.h"

namespace hkt::report {

struct ReproduceRequest {
  RunSettings settings;
  std::string tier;
  std::vector<std::string> only;  // names of rows or runs; empty: all
  int64_t jobs = 2;               // runs side by side
};

// Told in the thread that called Reproduce.
struct ReproduceWatcher {
  std::function<void(const std::string& line)> line = [](const std::string&) {};  // once
  std::function<void(const std::string& status)> status = [](const std::string&) {
  };                                             // every second
  std::function<int()> stop = [] { return 0; };  // a signal that came
};

struct ReproduceOutcome {
  std::vector<PlannedRun> plan;     // as it is at the end
  std::vector<std::string> failed;  // ids
  int signal = 0;                   // that stopped it
};

// Runs what is missing of a tier, `jobs` runs at a time, and writes a result for each. A run that
// fails is told with the end of its log, and the others go on. After a signal the processes get it
// too, save and leave. Throws before anything begins where the tier, the data or what is there
// already does not fit (experiment.h, plan.h), and where another process does the same tier.
ReproduceOutcome Reproduce(const ReproduceRequest& request, const ReproduceWatcher& watcher);

// A row a run: tier, name, seed, row, group, state, step, steps, result.
Json ToJson(const std::vector<PlannedRun>& plan, const Places& places);

}  // namespace hkt::report
