#include "hkt/train/run.h"

#include <array>
#include <string_view>
#include <utility>

#include "hkt/base/error.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"

namespace hkt::train {
namespace {

// Fields that a resumed run may change. Not `eval_every`: it decides among which weights the best
// are chosen. The number of threads changes the order of some sums, so the result stays bitwise the
// same only when it stays the same; a run must be able to move to another machine all the same.
// `data` is a path: the state holds the data to their content.
// `patience` decides when a run ends, not what it computes: one that ended early may go on.
constexpr std::array<std::string_view, 8> kChangeable = {"data",        "max_time",  "save_every",
                                                         "keep_states", "log_every", "tensorboard",
                                                         "threads",     "patience"};

Config PlanResume(const RunRequest& request) {
  CheckUsage(!request.out.empty(),
             "--resume needs the folder of the run: hkt train --resume --out DIR");
  const io::RunFolder folder(request.out);
  CheckUsage(std::filesystem::exists(folder.config()), "nothing to resume in ", request.out,
             ": there is no ", folder.config().string(),
             "; name the folder of a run, or leave --resume out to start one");
  Config config = folder.ReadConfig();
  std::set<std::string> fixed = request.given, changeable;
  for (std::string_view name : kChangeable) {
    if (fixed.erase(std::string(name)) > 0) changeable.insert(std::string(name));
  }
  const auto differences = io::Differences(config, request.config, fixed);
  if (!differences.empty()) {
    std::string message = Concat("the run in ", request.out, " has another configuration: ");
    for (size_t i = 0; i < differences.size(); ++i) message += (i ? "; " : "") + differences[i];
    throw UsageError(message +
                     "; leave these out to resume, or start a new run with another --out");
  }
  io::CopyFields(request.config, changeable, config);
  // A time limit is one of the session that was given it.
  if (!changeable.contains("max_time")) config.train.max_time = 0;
  Resolve(config);
  return config;
}

void CheckHoldsNoRun(const io::RunFolder& folder) {
  CheckUsage(!folder.HoldsRun(), folder.root().string(),
             " already holds a run; add --resume to continue it, or choose another --out");
}

}  // namespace

const std::set<std::string>& ChangeableOnResume() {
  static const std::set<std::string> names(kChangeable.begin(), kChangeable.end());
  return names;
}

Config PlanRun(const RunRequest& asked) {
  RunRequest request = asked;
  // The run can then be resumed and evaluated from any folder.
  std::string& data = request.config.data.data;
  if (!data.empty()) data = std::filesystem::absolute(data).lexically_normal().string();
  CheckUsage(nlohmann::json::parse(io::CompactJson(data)) == data, "--data is '", data,
             "', which is not UTF-8, so config.json could not hold it; rename it, or give a link");
  CheckUsage(request.resume || !request.from_step, "--from-step needs --resume");
  CheckUsage(request.from_step.value_or(0) >= 0, "--from-step is ", request.from_step.value_or(0),
             ", must be the step of a kept state, from 0 on");
  if (request.resume) return PlanResume(request);
  Config config = request.config;
  Resolve(config);
  if (!request.out.empty()) CheckHoldsNoRun(io::RunFolder(request.out));
  return config;
}

OpenRun OpenRunFolder(const RunRequest& request, const Config& planned) {
  if (request.resume) {
    OpenRun run{io::RunFolder(request.out), std::make_unique<io::FolderLock>(request.out)};
    io::CheckWritable(run.folder.root());  // now, and not when the first save fails
    return run;
  }
  std::filesystem::path root = request.out;
  if (request.out.empty()) {
    root = io::CreateNumberedFolder("runs", planned.data.task + "-" + planned.model.model);
  } else {
    io::CreateFolders(root);
  }
  OpenRun run{io::RunFolder(root), std::make_unique<io::FolderLock>(root)};
  CheckHoldsNoRun(run.folder);  // another process may have been faster
  run.folder.WriteConfig(planned);
  return run;
}

}  // namespace hkt::train
