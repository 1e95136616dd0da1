#include "hkt/report/plan.h"

#include <algorithm>

#include "hkt/base/error.h"
#include "hkt/report/exists.h"
#include "hkt/report/json_reader.h"

namespace hkt::report {
namespace {

namespace fs = std::filesystem;

PlannedRun Look(const Places& places, const ExperimentRun& run,
                std::vector<std::string>& problems) {
  PlannedRun planned;
  planned.run = run;
  const fs::path result = places.result(run);
  const io::RunFolder folder(places.folder(run));
  const auto compare = [&](const Json& stored, const fs::path& file) {
    for (const std::string& difference : ConfigDifferences(run, stored, file.string()))
      problems.push_back(file.string() + ": " + difference);
  };
  if (Exists(result)) {
    Json storage;
    const JsonReader file = JsonReader::Read(result, "hkt reproduce", storage);
    compare(file["config"].json(), result);
    planned.state = RunState::kDone;
    planned.seconds = file["time"]["wall_seconds"].Number();
  } else if (Exists(folder.config())) {
    Json storage;
    compare(JsonReader::Read(folder.config(), "hkt train", storage).json(), folder.config());
    planned.progress = ReadProgress(folder);
    planned.state = planned.progress.finished ? RunState::kTrained : RunState::kBegun;
  }
  return planned;
}

}  // namespace

const char* Name(RunState state) {
  switch (state) {
    case RunState::kDone:
      return "done";
    case RunState::kTrained:
      return "trained";
    case RunState::kBegun:
      return "begun";
    case RunState::kNew:
      return "new";
  }
  return "";
}

std::vector<PlannedRun> Plan(const Places& places, const std::vector<ExperimentRun>& runs) {
  std::vector<PlannedRun> plan;
  std::vector<std::string> problems;
  for (const ExperimentRun& run : runs) plan.push_back(Look(places, run, problems));
  if (problems.empty()) return plan;
  std::string list;
  for (const std::string& problem : problems) list += (list.empty() ? "" : "; ") + problem;
  Fail(list, ". Put the experiment back as it was, or remove these to run it again");
}

std::string FindData(const fs::path& folder, const std::string& task) {
  if (task == "listops") return "";
  CheckUsage(task == "imdb" || task == "cifar10", "task ", task,
             " has no archive of a known name, so that an experiment cannot use it");
  const std::string stem = task == "imdb" ? "aclImdb" : "cifar-10-b";
  const std::string wanted = task == "imdb" ? "aclImdb_v1.tar.gz" : "cifar-10-binary.tar.gz";
  CheckUsage(!folder.empty(), "task ", task, " needs its data; name the folder that holds ", wanted,
             " with --data or HKT_DATA");
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(stem)) found.push_back(entry.path());
  }
  CheckUsage(!found.empty(), "no ", stem, "* in the folder of the data, ", folder.string(),
             "; it is to hold ", wanted, " (or .tar.xz, or unpacked)");
  return std::min_element(found.begin(), found.end())->string();
}

}  // namespace hkt::report
