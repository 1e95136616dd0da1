// The program `hkt`: finds the subcommands that registered themselves, parses, runs one, and turns
// what it throws into an exit status and one line on stderr.

#include <c10/util/Exception.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/arguments.h"
#include "cli/subcommand.h"
#include "hkt/base/error.h"
#include "hkt/base/status.h"
#include "hkt/base/text.h"
#include "hkt/base/version.h"
#include "hkt/io/file.h"
#include "hkt/train/system.h"

namespace hkt::cli {
namespace {

struct Entry {
  std::string name;
  void (*add)(CLI::App& root);
};

std::vector<Entry>& Registry() {
  static std::vector<Entry> registry;
  return registry;
}

constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kSignalBase = 128;

// One line whatever a message quotes; a long one loses its middle.
std::string OneLine(const std::string& text) {
  constexpr size_t kMost = 2000;
  std::string line = Printable(text);
  if (line.size() > kMost)
    line = line.substr(0, kMost / 2) + " ... " + line.substr(line.size() - kMost / 2);
  return Printable(line);  // the cuts may have gone through a character
}

// A file that is opened takes the lowest number that is free: without this, one whose parent closed
// standard output or error would get what is printed there. Reading and writing them stay errors.
void HoldStandardStreams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    const int null = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    if (null >= 0 && null != descriptor) ::close(null);
  }
}

int Complain(const std::string& message, int status) {
  std::cerr << "hkt: error: " << OneLine(message) << std::endl;
  return status;
}

// CLI11 says of an unknown word behind a group of commands only that a command is missing.
void CheckSubcommand(const CLI::App& app, const std::string& command, const std::string& word) {
  if (word.empty() || word[0] == '-') return;
  for (const CLI::App* group : app.get_subcommands([](const CLI::App*) { return true; })) {
    const auto commands = group->get_subcommands([](const CLI::App*) { return true; });
    if (group->get_name() != command || commands.empty()) continue;
    const bool known = std::any_of(commands.begin(), commands.end(),
                                   [&](const CLI::App* one) { return one->get_name() == word; });
    CheckUsage(known, "unknown command '", command, " ", word, "'; 'hkt ", command,
               " --help' lists them");
  }
}

int Run(int argc, char** argv) {
  CLI::App app("Hierarchical Kernel Transformer: multi-scale attention, trained and compared.",
               "hkt");
  app.set_version_flag("--version", std::string("hkt ") + std::string(Version()));
  ShowStatus(true);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  std::sort(Registry().begin(), Registry().end(),
            [](const Entry& a, const Entry& b) { return a.name < b.name; });
  for (const Entry& entry : Registry()) entry.add(app);
  CheckValues(app);
  try {
    const std::string command = argc > 1 ? argv[1] : "";
    const bool known = std::any_of(Registry().begin(), Registry().end(),
                                   [&](const Entry& entry) { return entry.name == command; });
    CheckUsage(known || command.empty() || command[0] == '-', "unknown command '", command,
               "'; 'hkt --help' lists them");
    CheckSubcommand(app, command, argc > 2 ? argv[2] : "");
    CheckArguments(app, argc, argv);
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    app.exit(success);
  } catch (const CLI::ParseError& error) {
    return Complain(std::string(error.what()) + " (see 'hkt --help' or 'hkt <command> --help')",
                    kUsage);
  } catch (const UsageError& error) {
    return Complain(error.what(), kUsage);
  } catch (const SignalExit& stop) {
    return kSignalBase + stop.signal;
  } catch (const c10::Error& error) {  // without the C++ backtrace, which helps no user
    return Complain(error.what_without_backtrace(), kFailed);
  } catch (const std::bad_alloc&) {
    return Complain("out of memory; lower --batch, --seq-len or --d-model", kFailed);
  } catch (const std::exception& error) {
    return Complain(error.what(), kFailed);
  }
  std::cout.flush();
  const bool written = std::cout && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  return written ? 0 : Complain("could not write to standard output", kFailed);
}

}  // namespace

Subcommand::Subcommand(const char* name, void (*add)(CLI::App& root)) {
  Registry().push_back({name, add});
}

}  // namespace hkt::cli

int main(int argc, char** argv) {
  hkt::cli::HoldStandardStreams();
  // Output into a pipe that nobody reads ends the process without a word, also where a parent had
  // SIGPIPE ignored.
  ::signal(SIGPIPE, SIG_DFL);
  ::signal(SIGXFSZ, SIG_IGN);  // a file above the user's limit is a failed write, not the end
  const std::string_view command = argc > 1 ? argv[1] : "";
  if (command == "train" || command == "eval" || command == "predict" || command == "bench" ||
      command == "analyze")
    hkt::train::RestartWithoutThreadCache(argv);
  hkt::io::CleanUpOnSignals();
  return hkt::cli::Run(argc, argv);
}
