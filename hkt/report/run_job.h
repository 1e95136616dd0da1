#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hkt/report/child_process.h"
#include "hkt/report/plan.h"

namespace hkt::report {

// What the runs of a tier have in common.
struct RunSettings {
  std::string program;  // the path of hkt; may be /proc/self/exe
  Places places;
  std::filesystem::path data;  // folder of the archives; may be empty
  int64_t threads = 1;         // of each process
  std::string processor;       // the machine's name, for the results
};

// One run on its way to its result: hkt train, hkt eval, hkt analyze (for models of several
// levels), the file. What is there already is not done again. A process a stage, its output in
// <folder>.log.
class RunJob {
 public:
  enum class End { kDone, kFailed, kStopped };

  RunJob(PlannedRun planned, const RunSettings& settings);

  // To be called again and again: looks whether the stage has ended and begins the next one. Never
  // waits, never throws for what fails in the run.
  void Advance();
  // Passes a signal on; no stage begins any more.
  void Stop(int signal);

  const ExperimentRun& run() const { return planned_.run; }
  const std::optional<End>& end() const { return end_; }
  // "training", "test", "analysis"; what failed, with the last lines of the log; or where the
  // result is.
  const std::string& what() const { return what_; }
  // Of the training; read anew while it goes on.
  const RunProgress& progress();

 private:
  using Clock = std::chrono::steady_clock;

  void Begin(const std::string& stage, const std::vector<std::string>& arguments);
  void BeginNext();
  void Finish(End end, const std::string& what);
  bool IsHeld();

  PlannedRun planned_;
  const RunSettings& settings_;
  io::RunFolder folder_;
  std::vector<std::string> begun_;  // stages
  std::unique_ptr<ChildProcess> child_;
  std::string what_;
  std::optional<End> end_;
  bool stopping_ = false;
  std::optional<Clock::time_point> held_since_;
  Clock::time_point read_at_{};
};

}  // namespace hkt::report
