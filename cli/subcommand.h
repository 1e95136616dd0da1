#pragma once

#include <CLI/CLI.hpp>

namespace hkt::cli {

// A subcommand of the program. Each lies in a file of its own and registers itself by a static
// object:
//   static const Subcommand kInfo("info", AddInfo);
// `add` makes the CLI11 subcommand, binds its options and sets its callback. A callback ends a job
// that failed by throwing: hkt::UsageError (exit status 2), any other std::exception (1),
// SignalExit (128 + signal).
struct Subcommand {
  Subcommand(const char* name, void (*add)(CLI::App& root));
};

// Thrown by a job that saved and left because of a signal.
struct SignalExit {
  int signal;
};

}  // namespace hkt::cli
