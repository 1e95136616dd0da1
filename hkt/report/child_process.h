#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace hkt::report {

// How a process ended.
struct ExitStatus {
  int code = 0;    // 128 + signal where one ended it
  int signal = 0;  // 0: it ended by itself

  bool good() const { return code == 0; }
  std::string Describe() const;  // "exit status 1", "signal 9 (Killed)"
};

// A program with its output, both streams, appended to a file. It is in a process group of its own,
// so that Ctrl-C reaches it once, through whoever started it; when that one is killed, it gets
// SIGTERM from the system. Its standard input is empty.
class ChildProcess {
 public:
  // `program` is a path; `argv` begins with a name for it. Throws Error where the log cannot be
  // opened or no process begins; a program that is not there ends with 127.
  ChildProcess(const std::string& program, const std::vector<std::string>& argv,
               const std::filesystem::path& log);
  ~ChildProcess();  // one that still runs is killed
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Its status once it has ended; never waits.
  std::optional<ExitStatus> Poll();
  // To it and to whatever it began, its process group.
  void Send(int signal);

 private:
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_;
};

// The last lines of a text file, at most so many; empty where it cannot be read. A line that a
// terminal would rewrite (\r) counts as its last state.
std::string Tail(const std::filesystem::path& file, int lines);

}  // namespace hkt::report
