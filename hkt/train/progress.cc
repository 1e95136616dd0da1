#include "hkt/train/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iostream>

#include "hkt/base/text.h"

namespace hkt::train {
namespace {

constexpr std::chrono::milliseconds kRedraw(100);

template <class... Args>
std::string Format(const char* format, Args... args) {
  std::array<char, 256> text;
  std::snprintf(text.data(), text.size(), format, args...);
  return text.data();
}

size_t TerminalWidth() {
  struct winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string Rate(double tokens_per_second) {
  return tokens_per_second >= 1000 ? Format("%.1fk tok/s", tokens_per_second / 1000)
                                   : Format("%.0f tok/s", tokens_per_second);
}

}  // namespace

std::string FormatDuration(double seconds) {
  const auto total = static_cast<long>(std::llround(std::clamp(seconds, 0.0, 1e9)));
  const long hours = total / 3600, minutes = total / 60 % 60, rest = total % 60;
  return hours > 0 ? Format("%ld:%02ld:%02ld", hours, minutes, rest)
                   : Format("%ld:%02ld", minutes, rest);
}

std::string FormatCount(int64_t count) {
  std::string text = std::to_string(count);
  for (size_t i = text.size(); i > 3 + (count < 0);) {
    i -= 3;
    text.insert(i, ",");
  }
  return text;
}

ProgressPrinter::ProgressPrinter(Style style, int64_t steps, int64_t first_step)
    : style_(style), steps_(steps), first_step_(first_step) {}

ProgressPrinter::Style ProgressPrinter::StyleFor(bool quiet) {
  if (quiet) return Style::kQuiet;
  return isatty(STDERR_FILENO) ? Style::kBar : Style::kLines;
}

double ProgressPrinter::SecondsLeft(int64_t step) const {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  return elapsed / static_cast<double>(std::max<int64_t>(step - first_step_, 1)) *
         static_cast<double>(steps_ - step);
}

void ProgressPrinter::OnStep(const StepReport& report) {
  const Progress& progress = *report.progress;
  if (report.outcome.end == StepOutcome::End::kUpdated) {
    loss_ = has_loss_ ? 0.95 * loss_ + 0.05 * report.outcome.loss : report.outcome.loss;
    has_loss_ = true;
  }
  const std::string skipped =
      progress.skipped > 0 ? Format("  skipped %ld", static_cast<long>(progress.skipped)) : "";
  if (style_ == Style::kLines && report.logged) {
    PrintLine(Format("step %ld/%ld  loss %.4f  lr %.2e  %s  left %s%s",
                     static_cast<long>(progress.step), static_cast<long>(steps_), report.mean_loss,
                     report.outcome.rate, Rate(report.tokens_per_second).c_str(),
                     FormatDuration(SecondsLeft(progress.step)).c_str(), skipped.c_str()));
  }
  const auto now = Clock::now();
  if (style_ != Style::kBar || (now - drawn_ < kRedraw && progress.step < steps_)) return;
  drawn_ = now;
  const std::string text =
      Format(" %ld/%ld  loss %.4f  %s  left %s%s", static_cast<long>(progress.step),
             static_cast<long>(steps_), loss_, Rate(report.tokens_per_second).c_str(),
             FormatDuration(SecondsLeft(progress.step)).c_str(), skipped.c_str());
  const size_t width = TerminalWidth();
  // One column stays free: a full line would wrap and could not be rewritten.
  const size_t room = width > text.size() + 4 ? std::min<size_t>(width - text.size() - 4, 30) : 0;
  const auto filled =
      static_cast<size_t>(static_cast<double>(room) * static_cast<double>(progress.step) /
                          static_cast<double>(std::max<int64_t>(steps_, 1)));
  std::string line =
      room > 0 ? "[" + std::string(filled, '#') + std::string(room - filled, '.') + "]" : "";
  line = (line + text).substr(0, width - 1);
  std::cerr << "\r\033[K" << line << std::flush;
  bar_shown_ = true;
}

void ProgressPrinter::OnEvaluation(const EvaluationReport& report) {
  if (style_ == Style::kQuiet) return;
  if (!std::isfinite(report.point.loss)) {
    PrintLine(Format("step %ld/%ld  validation loss is not finite; these weights are not kept",
                     static_cast<long>(report.point.step), static_cast<long>(steps_)));
    return;
  }
  PrintLine(Format("step %ld/%ld  %s accuracy %.2f %%  loss %.4f%s",
                   static_cast<long>(report.point.step), static_cast<long>(steps_),
                   report.overfit_batch ? "the batch's" : "validation", 100 * report.point.accuracy,
                   report.point.loss, report.is_best ? "  (best so far)" : ""));
}

void ProgressPrinter::OnWarning(const std::string& message) {
  PrintLine("hkt: warning: " + Printable(message));
}

void ProgressPrinter::PrintLine(const std::string& line) {
  // On a terminal the bar's line is erased first; the next step draws it anew.
  if (bar_shown_) std::cerr << "\r\033[K";
  bar_shown_ = false;
  std::cerr << line << std::endl;
}

ProgressPrinter::~ProgressPrinter() {
  if (bar_shown_) std::cerr << std::endl;
}

}  // namespace hkt::train
