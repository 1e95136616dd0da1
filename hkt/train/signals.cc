#include "hkt/train/signals.h"

#include <signal.h>
#include <unistd.h>

#include <array>

#include "hkt/io/file.h"

namespace hkt::train {
namespace {

constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

volatile sig_atomic_t received = 0;
std::array<struct sigaction, kSignals.size()> previous;

void Note(int signal) {
  // Who closed the pipe that progress went into asks once, however much is still written to it.
  if (received != 0 && signal == SIGPIPE) return;
  if (received != 0) {
    io::RemoveTemporaries();
    ::_exit(128 + signal);
  }
  received = signal;
}

}  // namespace

SignalGuard::SignalGuard() {
  received = 0;
  struct sigaction action = {};
  action.sa_handler = Note;
  action.sa_flags = SA_RESTART;  // a save that is under way goes on
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &previous[i]);
    if (previous[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

SignalGuard::~SignalGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &previous[i], nullptr);
}

int SignalGuard::Received() { return received; }

}  // namespace hkt::train
