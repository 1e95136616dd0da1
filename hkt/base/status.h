#pragma once

#include <chrono>
#include <string>

namespace hkt {

// Whether this process shows what it is busy with on stderr; off at first, so that a library says
// nothing. Even then only a terminal is written to.
void ShowStatus(bool show);

// One line of a terminal that is rewritten while something long goes on, and removed at its end.
class StatusLine {
 public:
  explicit StatusLine(std::string what);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  // share 0 ... 1 of the work done. May be called as often as one likes.
  void Update(double share);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  bool active_;
  bool drawn_ = false;
  Clock::time_point next_;
};

}  // namespace hkt
