#include "hkt/train/run.h"

#include <array>
#include <string_view>
#include <utility>

#include "hkt/base/error.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"

namespace hkt::train {
namespace {

// Fields that a resumed run may change. Not `eval_every`: it decides among which weights the best
// are chosen. The number of threads changes the order of some sums, so the result stays bitwise the
// same only when it stays the same; a run must be able to move to another machine all the same.
// `data` is a path: the state holds the data to their content.
constexpr std::array<std::string_view, 5> kChangeable = {"data", "max_time", "save_every",
                                                         "log_every", "threads"};

OpenRun Resume(const RunRequest& request) {
  CheckUsage(!request.out.empty(),
             "--resume needs the folder of the run: hkt train --resume --out DIR");
  OpenRun run{io::RunFolder(request.out), {}, nullptr};
  CheckUsage(std::filesystem::exists(run.folder.config()), "nothing to resume in ", request.out,
             ": there is no ", run.folder.config().string(),
             "; name the folder of a run, or leave --resume out to start one");
  run.lock = std::make_unique<io::FolderLock>(run.folder.root());
  run.config = run.folder.ReadConfig();
  std::set<std::string> fixed = request.given, changeable;
  for (std::string_view name : kChangeable) {
    if (fixed.erase(std::string(name)) > 0) changeable.insert(std::string(name));
  }
  const auto differences = io::Differences(run.config, request.config, fixed);
  if (!differences.empty()) {
    std::string message = Concat("the run in ", request.out, " has another configuration: ");
    for (size_t i = 0; i < differences.size(); ++i) message += (i ? "; " : "") + differences[i];
    throw UsageError(message +
                     "; leave these out to resume, or start a new run with another --out");
  }
  io::CopyFields(request.config, changeable, run.config);
  Resolve(run.config);
  return run;
}

}  // namespace

OpenRun OpenRunFolder(const RunRequest& request) {
  if (request.resume) return Resume(request);
  Config config = request.config;
  Resolve(config);
  if (!request.out.empty()) {
    CheckUsage(!io::RunFolder(request.out).HoldsRun(), request.out,
               " already holds a run; add --resume to continue it, or choose another --out");
    io::CreateFolders(request.out);
  }
  const std::filesystem::path root =
      request.out.empty()
          ? io::CreateNumberedFolder("runs", config.data.task + "-" + config.model.model)
          : std::filesystem::path(request.out);
  OpenRun run{io::RunFolder(root), config, std::make_unique<io::FolderLock>(root)};
  run.folder.WriteConfig(config);
  return run;
}

}  // namespace hkt::train
