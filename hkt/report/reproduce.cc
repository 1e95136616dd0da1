#include "hkt/report/reproduce.h"

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <thread>

#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/report/time_left.h"

namespace hkt::report {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};
constexpr std::chrono::seconds kTellEvery{1};

class Crew {
 public:
  Crew(const ReproduceRequest& request, const ReproduceWatcher& watcher)
      : request_(request), watcher_(watcher) {
    ReadPlan();
  }

  ReproduceOutcome Work() {
    std::optional<io::FolderLock> lock;
    if (!waiting_.empty()) {
      Hold(lock);
      ReadPlan();  // as it is now that nobody else changes it
    }
    if (waiting_.empty()) {
      watcher_.line(Concat("nothing to do: all ", outcome_.plan.size(), " runs of tier ",
                           request_.tier, " have their results"));
      return outcome_;
    }
    watcher_.line(Concat(waiting_.size(), " of ", outcome_.plan.size(), " runs to do, ",
                         request_.jobs, " side by side with ", request_.settings.threads,
                         request_.settings.threads == 1 ? " thread" : " threads", " each"));
    while (!working_.empty() || (!waiting_.empty() && outcome_.signal == 0)) {
      Turn();
      std::this_thread::sleep_for(kLookEvery);
    }
    return outcome_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  struct Worker {
    Worker(PlannedRun* p, const RunSettings& settings) : planned(p), job(*p, settings) {}
    PlannedRun* planned;
    RunJob job;
    std::string stage;
  };

  void ReadPlan() {
    const Places& places = request_.settings.places;
    waiting_.clear();
    outcome_.plan = Plan(places, Only(ReadTier(places, request_.tier), request_.only));
    for (PlannedRun& planned : outcome_.plan) {
      if (planned.state == RunState::kDone) continue;
      FindData(request_.settings.data, planned.run.config.data.task);  // now, and not after hours
      waiting_.push_back(&planned);
    }
  }

  void Hold(std::optional<io::FolderLock>& lock) const {
    const auto folder = request_.settings.places.runs / request_.tier;
    io::CreateFolders(folder);
    io::CheckWritable(folder);
    try {
      lock.emplace(folder);
    } catch (const Error&) {
      Fail("another hkt reproduce is at work on tier ", request_.tier, " in ", folder.string(),
           "; wait for it, or give another --runs");
    }
  }

  void Turn() {
    if (outcome_.signal == 0 && (outcome_.signal = watcher_.stop()) != 0) {
      watcher_.line("stopping: the processes save and leave");
      for (const auto& worker : working_) worker->job.Stop(outcome_.signal);
    }
    while (outcome_.signal == 0 && !waiting_.empty() &&
           static_cast<int64_t>(working_.size()) < request_.jobs) {
      working_.push_back(std::make_unique<Worker>(waiting_.front(), request_.settings));
      waiting_.pop_front();
    }
    for (auto at = working_.begin(); at != working_.end();) {
      Look(**at);
      at = (*at)->job.end() ? working_.erase(at) : std::next(at);
    }
    if (Clock::now() >= tell_at_) {
      tell_at_ = Clock::now() + kTellEvery;
      if (!working_.empty()) watcher_.status(Status());
    }
  }

  void Look(Worker& worker) {
    RunJob& job = worker.job;
    job.Advance();
    PlannedRun& planned = *worker.planned;
    planned.progress = job.progress();
    if (planned.progress.step > 0 && planned.state == RunState::kNew)
      planned.state = RunState::kBegun;
    if (planned.progress.finished) planned.state = RunState::kTrained;
    const std::string id = job.run().id();
    if (!job.end()) {
      if (job.what() != worker.stage) watcher_.line(id + ": " + job.what());
      worker.stage = job.what();
      return;
    }
    switch (*job.end()) {
      case RunJob::End::kDone:
        planned.state = RunState::kDone;
        planned.seconds = planned.progress.seconds;
        watcher_.line(id + ": done, " + job.what());
        break;
      case RunJob::End::kFailed:
        outcome_.failed.push_back(id);
        watcher_.line(id + ": failed: " + job.what());
        break;
      case RunJob::End::kStopped:
        watcher_.line(id + ": " + job.what());
        break;
    }
  }

  std::string Status() const {
    size_t done = 0;
    for (const PlannedRun& planned : outcome_.plan) done += planned.state == RunState::kDone;
    const TimeLeft left = EstimateTimeLeft(outcome_.plan, request_.jobs);
    std::string text = Concat(done, "/", outcome_.plan.size(), " runs");
    if (left.seconds > 0 || left.unknown == 0) text += ", left " + FormatSeconds(left.seconds);
    if (left.unknown > 0)
      text +=
          Concat(left.seconds > 0 ? " and " : ", left ", left.unknown, " runs not yet measured");
    for (const auto& worker : working_) {
      const RunProgress& p = worker->planned->progress;
      text += Concat(" | ", worker->job.run().id(), " ");
      if (p.finished) {
        text += worker->job.what();
      } else {
        text += Concat(p.step, "/", worker->planned->run.config.train.steps);
      }
    }
    return text;
  }

  const ReproduceRequest& request_;
  const ReproduceWatcher& watcher_;
  ReproduceOutcome outcome_;
  std::deque<PlannedRun*> waiting_;
  std::list<std::unique_ptr<Worker>> working_;
  Clock::time_point tell_at_{};
};

}  // namespace

ReproduceOutcome Reproduce(const ReproduceRequest& request, const ReproduceWatcher& watcher) {
  CheckUsage(request.jobs >= 1 && request.jobs <= 256, "--jobs is ", request.jobs,
             ", must be from 1 to 256");
  return Crew(request, watcher).Work();
}

Json ToJson(const std::vector<PlannedRun>& plan, const Places& places) {
  Json rows = Json::array();
  for (const PlannedRun& planned : plan) {
    const ExperimentRun& run = planned.run;
    const int64_t steps = run.config.train.steps;
    rows.push_back({{"tier", run.tier},
                    {"name", run.name},
                    {"seed", run.seed},
                    {"row", run.row},
                    {"group", run.group},
                    {"state", Name(planned.state)},
                    {"step", planned.state == RunState::kDone ? steps : planned.progress.step},
                    {"steps", steps},
                    {"result", places.result(run).string()}});
  }
  return rows;
}

}  // namespace hkt::report
