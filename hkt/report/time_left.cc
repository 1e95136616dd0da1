#include "hkt/report/time_left.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <optional>

#include "hkt/base/error.h"

namespace hkt::report {
namespace {

struct Mean {
  double sum = 0;
  int64_t count = 0;
  void Add(double x) {
    sum += x;
    ++count;
  }
  double value() const { return sum / static_cast<double>(count); }
};

// Runs whose steps cost alike, but for the model.
std::string Kind(const ExperimentRun& run) {
  const TrainConfig& t = run.config.train;
  return Concat(run.config.data.task, " ", run.config.data.preset, " ",
                run.config.data.seq_len.value_or(0), " ", t.batch * t.accumulate);
}

std::optional<double> StepSeconds(const PlannedRun& planned) {
  if (planned.state == RunState::kDone && planned.seconds > 0)
    return planned.seconds / static_cast<double>(planned.run.config.train.steps);
  if (planned.progress.step > 0 && planned.progress.seconds > 0)
    return planned.progress.seconds / static_cast<double>(planned.progress.step);
  return std::nullopt;
}

}  // namespace

TimeLeft EstimateTimeLeft(const std::vector<PlannedRun>& plan, int64_t jobs) {
  std::map<std::string, Mean> by_row, by_kind;
  for (const PlannedRun& planned : plan) {
    if (const auto step = StepSeconds(planned)) {
      by_row[planned.run.name].Add(*step);
      by_kind[Kind(planned.run)].Add(*step);
    }
  }
  TimeLeft left;
  double longest = 0;
  for (const PlannedRun& planned : plan) {
    if (planned.state == RunState::kDone || planned.state == RunState::kTrained) continue;
    std::optional<double> step = StepSeconds(planned);
    const auto row = by_row.find(planned.run.name);
    const auto kind = by_kind.find(Kind(planned.run));
    if (!step && row != by_row.end()) step = row->second.value();
    if (!step && kind != by_kind.end()) step = kind->second.value();
    if (!step) {
      ++left.unknown;
      continue;
    }
    const int64_t steps = planned.run.config.train.steps - planned.progress.step;
    const double seconds = *step * static_cast<double>(std::max<int64_t>(0, steps));
    left.seconds += seconds;
    longest = std::max(longest, seconds);
  }
  left.seconds = std::max(longest, left.seconds / static_cast<double>(std::max<int64_t>(1, jobs)));
  return left;
}

std::string FormatSeconds(double seconds) {
  const auto s = static_cast<int64_t>(std::max(0.0, seconds) + 0.5);
  std::array<char, 32> text{};
  if (s >= 3600) {
    std::snprintf(text.data(), text.size(), "%ld:%02ld:%02ld", static_cast<long>(s / 3600),
                  static_cast<long>(s / 60 % 60), static_cast<long>(s % 60));
  } else {
    std::snprintf(text.data(), text.size(), "%ld:%02ld", static_cast<long>(s / 60),
                  static_cast<long>(s % 60));
  }
  return text.data();
}

}  // namespace hkt::report
