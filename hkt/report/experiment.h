#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hkt/base/config.h"

// The experiments: one text file a table row, experiments/<tier>/<name>.json,
//   { "row": "HKT", "group": "table", "base": "_imdb", "seeds": [1, 2, 3], "note": "…",
//     "config": { options of hkt train in snake_case } }
// "base" names a file of the same folder, _<name>.json, whose "config" lies beneath (and which may
// have a base of its own); "note" says why the row is there. Files that begin with "_" are no rows.

namespace hkt::report {

using Json = nlohmann::ordered_json;

// One run: a row of the table with one seed.
struct ExperimentRun {
  std::string tier, name, row, group, note;
  int64_t seed = 1;
  Json options;   // of hkt train, bases merged, the seed included; not resolved
  Config config;  // the same, resolved

  std::string id() const { return name + "-s" + std::to_string(seed); }
};

// Where everything lies: the folder `experiments` and the folder of the run folders.
struct Places {
  std::filesystem::path experiments = "experiments";
  std::filesystem::path runs = "runs/experiments";

  std::filesystem::path results(const std::string& tier) const;  // folder
  std::filesystem::path result(const ExperimentRun& run) const;  // the file committed
  std::filesystem::path folder(const ExperimentRun& run) const;  // <runs>/<tier>/<name>-s<seed>
  std::filesystem::path log(const ExperimentRun& run) const;     // <folder>.log
};

// All runs of a tier in the order in which they are to be done: groups "table", "recipe", "smoke",
// then "ablation", then any other; within one the first seed of every row before the second.
// UsageError that names the tiers that there are for another tier; Error, naming the file, for
// whatever is wrong in one: a key that is unknown or missing, options that do not go together, a
// base that is not there, seeds, data or threads among the options.
std::vector<ExperimentRun> ReadTier(const Places& places, const std::string& tier);

// Those whose name is among `names`; UsageError for a name that is none. All of them without names.
std::vector<ExperimentRun> Only(std::vector<ExperimentRun> runs,
                                const std::vector<std::string>& names);

// Each option in which a stored configuration (a run's config.json or a result's "config") differs
// from the run's, as "lr is 0.001 there, 0.002 in the experiment". Options that change no figure do
// not count (data, threads, save_every, keep_states, log_every, max_time, tensorboard); options
// that the stored one lacks, as an older hkt wrote it, have their defaults. `what` is the stored
// file.
std::vector<std::string> ConfigDifferences(const ExperimentRun& run, const Json& stored,
                                           const std::string& what);

// The options as flags of hkt train: --task imdb --no-hybrid ….
std::vector<std::string> TrainFlags(const ExperimentRun& run);

}  // namespace hkt::report
