#pragma once

namespace hkt::train {

// While it lives, the first SIGINT, SIGTERM, SIGHUP or SIGPIPE is only noted, so that a job can
// save and leave; a second one ends the process at once with status 128 + signal. A signal that was
// ignored (nohup, a job in the background) stays ignored.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  // The signal that came, 0 for none.
  static int Received();
};

}  // namespace hkt::train
