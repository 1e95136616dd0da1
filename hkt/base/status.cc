#include "hkt/base/status.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

namespace hkt {
namespace {

std::atomic<bool> shown = false;

// What is over before this needs no line.
constexpr auto kDelay = std::chrono::milliseconds(300), kInterval = std::chrono::milliseconds(100);

}  // namespace

void ShowStatus(bool show) { shown = show; }

StatusLine::StatusLine(std::string what)
    : what_(std::move(what)),
      active_(shown && ::isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + kDelay) {}

StatusLine::~StatusLine() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void StatusLine::Update(double share) {
  if (!active_ || Clock::now() < next_) return;
  next_ = Clock::now() + kInterval;
  drawn_ = true;
  std::fprintf(stderr, "\r\033[K%s: %.0f %%", what_.c_str(), 100 * std::clamp(share, 0.0, 1.0));
  std::fflush(stderr);
}

}  // namespace hkt
