#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hkt/report/collect.h"
#include "hkt/report/experiment.h"

namespace hkt::report {

enum class RunState {
  kDone,     // its result is there
  kTrained,  // its run folder holds a finished run
  kBegun,    // its run folder holds a run that goes on with --resume
  kNew,
};
const char* Name(RunState state);  // "done", "trained", "begun", "new"

struct PlannedRun {
  ExperimentRun run;
  RunState state = RunState::kNew;
  RunProgress progress;
  double seconds = 0;  // that a done one's training took
};

// What is there of each run. Throws Error that lists every result and every run folder whose
// configuration differs from its experiment's, and in what: neither is overwritten.
std::vector<PlannedRun> Plan(const Places& places, const std::vector<ExperimentRun>& runs);

// The archive or folder of a task's data inside `folder`: aclImdb* for imdb, cifar-10-b* for
// cifar10, the first by name; empty for listops, which is generated. Throws UsageError where it is
// not there.
std::string FindData(const std::filesystem::path& folder, const std::string& task);

}  // namespace hkt::report
