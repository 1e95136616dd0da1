#pragma once

#include <chrono>
#include <string>

#include "hkt/train/observer.h"

namespace hkt::train {

// Shows how training goes on, on stderr: one line that is rewritten on a terminal, else a plain
// line every log step and evaluation. Quiet: warnings only.
class ProgressPrinter : public TrainObserver {
 public:
  enum class Style { kBar, kLines, kQuiet };

  // `first_step`: steps that earlier sessions did; the time left is estimated from this one.
  ProgressPrinter(Style style, int64_t steps, int64_t first_step);
  ~ProgressPrinter() override;  // ends the bar's line, so that others may print

  static Style StyleFor(bool quiet);

  void OnStep(const StepReport& report) override;
  void OnEvaluation(const EvaluationReport& report) override;
  void OnWarning(const std::string& message) override;

 private:
  using Clock = std::chrono::steady_clock;

  void PrintLine(const std::string& line);
  double SecondsLeft(int64_t step) const;

  Style style_;
  int64_t steps_;
  int64_t first_step_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point drawn_;
  bool bar_shown_ = false;
  double loss_ = 0;  // smoothed, for the bar
  bool has_loss_ = false;
};

// "1:02:03", "2:03".
std::string FormatDuration(double seconds);
// "12,345".
std::string FormatCount(int64_t count);

}  // namespace hkt::train
