#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "hkt/base/config.h"
#include "hkt/io/run_folder.h"

namespace hkt::train {

// What was asked for on the command line.
struct RunRequest {
  Config config;                // defaults, overridden by a file and by flags
  std::set<std::string> given;  // names of the fields that file or flags set
  std::string out;              // folder of the run; empty: the next free runs/<task>-<model>-<n>
  bool resume = false;
  std::optional<int64_t> from_step;  // with resume: from the kept state of this step
};

// The resolved configuration to train with; writes nothing, so that data and model can be tried
// before a folder is made. With resume: the configuration is that of the run; fields that were
// given and differ are one UsageError that lists them, but for those that do not change the result
// (data, max_time, save_every, keep_states, log_every, tensorboard, threads, patience), which are
// taken from the request. UsageErrors too: --resume without --out or without a run in it, and a
// folder that holds a run without
// --resume.
Config PlanRun(const RunRequest& request);

// Those fields.
const std::set<std::string>& ChangeableOnResume();

// A run folder, locked for this process.
struct OpenRun {
  io::RunFolder folder;
  std::unique_ptr<io::FolderLock> lock;
};

// Without resume the folder is created and gets its config.json. Throws Error when another process
// trains there.
OpenRun OpenRunFolder(const RunRequest& request, const Config& planned);

}  // namespace hkt::train
