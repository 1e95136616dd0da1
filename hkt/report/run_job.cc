#include "hkt/report/run_job.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"

namespace hkt::report {
namespace {

constexpr const char* kTraining = "training";
constexpr const char* kTest = "test";
constexpr const char* kAnalysis = "analysis";
constexpr int kTailLines = 12;
// A training whose parent was killed is told to save and leave; that takes as long as one step, or
// one batch of an evaluation.
constexpr std::chrono::seconds kWaitForOther{60};
constexpr std::chrono::seconds kReadEvery{1};

std::string Accuracy(double share) {
  char text[16];
  std::snprintf(text, sizeof(text), "%.2f %%", 100 * share);
  return text;
}

}  // namespace

RunJob::RunJob(PlannedRun planned, const RunSettings& settings)
    : planned_(std::move(planned)),
      settings_(settings),
      folder_(settings.places.folder(planned_.run)) {}

void RunJob::Finish(End end, const std::string& what) {
  end_ = end;
  what_ = what;
}

void RunJob::Begin(const std::string& stage, const std::vector<std::string>& arguments) {
  if (std::find(begun_.begin(), begun_.end(), stage) != begun_.end()) {
    Finish(End::kFailed,
           Concat("the ", stage, " ended and left nothing in ", folder_.root().string(), "; see ",
                  settings_.places.log(run()).string()));
    return;
  }
  begun_.push_back(stage);
  what_ = stage;
  std::vector<std::string> argv = {"hkt"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  argv.insert(argv.end(), {"--threads", std::to_string(settings_.threads)});
  const std::string data = FindData(settings_.data, run().config.data.task);
  if (!data.empty()) argv.insert(argv.end(), {"--data", data});
  const std::filesystem::path log = settings_.places.log(run());
  io::CreateFolders(log.parent_path());
  std::string line = "$";
  for (const std::string& argument : argv) line += " " + ShellWord(argument);
  io::AppendToFile(log, line + "\n");
  child_ = std::make_unique<ChildProcess>(settings_.program, argv, log);
}

// Another process is in the run folder: one that was left behind and is saving, or somebody's own.
bool RunJob::IsHeld() {
  if (!std::filesystem::exists(folder_.root())) return false;
  try {
    const io::FolderLock lock(folder_.root());
    held_since_.reset();
    return false;
  } catch (const Error&) {
    if (!held_since_) held_since_ = Clock::now();
    if (Clock::now() - *held_since_ > kWaitForOther) throw;
    return true;
  }
}

void RunJob::BeginNext() {
  const std::string root = folder_.root().string();
  planned_.progress = ReadProgress(folder_);
  if (!planned_.progress.finished) {
    what_ = kTraining;
    if (IsHeld()) return;
    std::vector<std::string> arguments = {"train", "--out", root};
    if (std::filesystem::exists(folder_.config())) {
      arguments.emplace_back("--resume");
    } else {
      const auto flags = TrainFlags(run());
      arguments.insert(arguments.end(), flags.begin(), flags.end());
    }
    Begin(kTraining, arguments);
  } else if (!IsEvaluated(folder_)) {
    Begin(kTest, {"eval", root, "--split", "test"});
  } else if (WantsAnalysis(run().config) && !IsAnalyzed(folder_)) {
    Begin(kAnalysis, {"analyze", root, "--init", "--quiet"});
  } else {
    const Json result = Collect(run(), folder_, settings_.processor);
    const std::filesystem::path file = settings_.places.result(run());
    io::CreateFolders(file.parent_path());
    io::WriteFileAtomically(file, io::PrettyJson(result));
    Finish(End::kDone,
           Concat("validation ", Accuracy(result["best"]["accuracy"].get<double>()), ", test ",
                  Accuracy(result["test"]["accuracy"].get<double>()), ", ", file.string()));
  }
}

void RunJob::Advance() {
  if (end_) return;
  try {
    if (child_) {
      const auto status = child_->Poll();
      if (!status) return;
      child_.reset();
      if (!status->good()) {
        const std::filesystem::path log = settings_.places.log(run());
        Finish(stopping_ ? End::kStopped : End::kFailed,
               stopping_ ? what_ + " stopped"
                         : Concat(what_, " ended with ", status->Describe(), "; the end of ",
                                  log.string(), ":\n", Tail(log, kTailLines)));
        return;
      }
    }
    if (stopping_) {
      Finish(End::kStopped, "stopped");
    } else {
      BeginNext();
    }
  } catch (const std::exception& error) {
    Finish(End::kFailed, error.what());
  }
}

void RunJob::Stop(int signal) {
  stopping_ = true;
  if (child_) child_->Send(signal);
}

const RunProgress& RunJob::progress() {
  if (child_ && what_ == kTraining && Clock::now() - read_at_ > kReadEvery) {
    read_at_ = Clock::now();
    try {
      planned_.progress = ReadProgress(folder_);
    } catch (const std::exception&) {  // being written; the next look will do
    }
  }
  return planned_.progress;
}

}  // namespace hkt::report
