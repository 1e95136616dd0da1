#include "hkt/report/child_process.h"

#include <fcntl.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>

#include "hkt/base/error.h"
#include "hkt/io/file.h"

namespace hkt::report {
namespace {

constexpr int kCannotStart = 127;  // as a shell says it

// Between fork and exec: only what is safe in a handler of signals.
[[noreturn]] void Become(const char* program, char* const* argv, int log, pid_t parent) {
  ::setpgid(0, 0);
#ifdef __linux__
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(128 + SIGTERM);  // it ended before the line above
#else
  static_cast<void>(parent);
#endif
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
  const int empty = ::open("/dev/null", O_RDONLY);
  if (empty >= 0) ::dup2(empty, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execv(program, argv);
  constexpr char kMessage[] = "cannot start the program\n";
  static_cast<void>(!::write(STDERR_FILENO, kMessage, sizeof(kMessage) - 1));
  ::_exit(kCannotStart);
}

}  // namespace

std::string ExitStatus::Describe() const {
  if (signal == 0) return Concat("exit status ", code);
  return Concat("signal ", signal, " (", ::strsignal(signal), ")");
}

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& argv,
                           const std::filesystem::path& log) {
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0) throw Error(io::SystemMessage("write", log, errno));
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  const int error = errno;
  if (pid_ == 0) Become(program.c_str(), arguments.data(), file, parent);
  ::close(file);
  Check(pid_ > 0, "cannot start ", program, ": ", std::strerror(error));
  ::setpgid(pid_, pid_);  // whichever of the two comes first
}

ChildProcess::~ChildProcess() {
  if (Poll()) return;
  Send(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<ExitStatus> ChildProcess::Poll() {
  if (status_) return status_;
  int raw = 0;
  pid_t got = 0;
  do {
    got = ::waitpid(pid_, &raw, WNOHANG);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return std::nullopt;
  if (got < 0) {  // somebody else took its status
    status_ = ExitStatus{.code = kCannotStart};
  } else if (WIFSIGNALED(raw)) {
    status_ = ExitStatus{.code = 128 + WTERMSIG(raw), .signal = WTERMSIG(raw)};
  } else {
    status_ = ExitStatus{.code = WEXITSTATUS(raw)};
  }
  return status_;
}

void ChildProcess::Send(int signal) {
  if (!status_) ::kill(-pid_, signal);
}

std::string Tail(const std::filesystem::path& path, int lines) {
  constexpr std::streamoff kMost = 1 << 16;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file.is_open()) return "";
  const std::streamoff size = file.tellg();
  file.seekg(std::max<std::streamoff>(0, size - kMost));
  std::vector<std::string> all;
  for (std::string line; std::getline(file, line);) {
    if (const size_t state = line.rfind('\r'); state != std::string::npos) line.erase(0, state + 1);
    all.push_back(line);
  }
  std::string text;
  const auto first = all.size() - std::min(all.size(), static_cast<size_t>(std::max(0, lines)));
  for (size_t i = first; i < all.size(); ++i) text += all[i] + "\n";
  return text;
}

}  // namespace hkt::report
