// hkt reproduce: parsing, printing and wiring; the job itself is hkt/report/reproduce.h.

#include "hkt/report/reproduce.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>

#include "cli/environment.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "cli/table.h"
#include "hkt/base/error.h"
#include "hkt/train/signals.h"
#include "hkt/train/system.h"

namespace hkt::cli {
namespace {

struct ReproduceFlags {
  report::ReproduceRequest request;
  bool list = false, json = false;
};

// Lines on stderr, and the state of things: rewritten on a terminal, else a line a minute.
class Printer {
 public:
  Printer() : terminal_(isatty(STDERR_FILENO) != 0) {}
  ~Printer() { Clear(); }

  void Line(const std::string& line) {
    Clear();
    std::cerr << line << std::endl;
  }

  void Status(const std::string& status) {
    if (terminal_) {
      std::cerr << "\r\033[K" << status << std::flush;
      shown_ = true;
    } else if (const auto now = Clock::now(); now >= next_) {
      next_ = now + std::chrono::minutes(1);
      std::cerr << status << std::endl;
    }
  }

 private:
  using Clock = std::chrono::steady_clock;

  void Clear() {
    if (shown_) std::cerr << "\r\033[K" << std::flush;
    shown_ = false;
  }

  bool terminal_, shown_ = false;
  Clock::time_point next_ = Clock::now() + std::chrono::minutes(1);
};

void PrintPlan(const Json& rows) {
  Table table({"name", "seed", "row", "group", "state", "steps"});
  for (const Json& row : rows) {
    table.Add({row["name"].get<std::string>(), Count(row["seed"]), row["row"].get<std::string>(),
               row["group"].get<std::string>(), row["state"].get<std::string>(),
               Count(row["step"]) + "/" + Count(row["steps"])});
  }
  table.Print();
}

void Reproduce(const ReproduceFlags& flags) {
  const report::ReproduceRequest& request = flags.request;
  const report::Places& places = request.settings.places;
  if (flags.list) {
    const Json rows = report::ToJson(
        report::Plan(places, report::Only(report::ReadTier(places, request.tier), request.only)),
        places);
    if (flags.json) {
      PrintJson({{"tier", request.tier}, {"runs", rows}});
    } else {
      PrintPlan(rows);
    }
    return;
  }
  report::ReproduceOutcome outcome;
  {
    Printer printer;
    const train::SignalGuard signals;
    outcome = report::Reproduce(
        request, {.line = [&](const std::string& line) { printer.Line(line); },
                  .status = [&](const std::string& status) { printer.Status(status); },
                  .stop = [] { return train::SignalGuard::Received(); }});
  }
  const Json rows = report::ToJson(outcome.plan, places);
  if (outcome.signal != 0) throw SignalExit{outcome.signal};
  std::string failed;
  for (const std::string& id : outcome.failed) failed += (failed.empty() ? "" : ", ") + id;
  Check(failed.empty(), outcome.failed.size(), " of ", rows.size(), " runs failed: ", failed,
        "; the same command tries them again");
  if (flags.json) PrintJson({{"tier", request.tier}, {"runs", rows}});
}

void AddReproduce(CLI::App& root) {
  auto flags = std::make_shared<ReproduceFlags>();
  report::ReproduceRequest& request = flags->request;
  CLI::App* app = root.add_subcommand(
      "reproduce", "run what is missing of a tier of experiments/ and collect the results");
  app->add_option("--tier", request.tier, "smoke, small, full or recipe: a folder in experiments/")
      ->required();
  app->add_option("--only", request.only, "rows (imdb-hkt) or runs (imdb-hkt-s1), by commas")
      ->delimiter(',')
      ->type_name("NAME,...");
  app->add_option("--data", request.settings.data,
                  "folder that holds the archives of IMDB and CIFAR-10 (default: HKT_DATA)")
      ->type_name("DIR");
  app->add_option("--jobs", request.jobs, "runs side by side")->capture_default_str();
  app->add_option("--threads", request.settings.threads, "threads of each")->capture_default_str();
  app->add_option("--runs", request.settings.places.runs, "where the run folders lie")
      ->capture_default_str()
      ->type_name("DIR");
  app->add_flag("--list", flags->list, "what there is of each run; runs nothing");
  app->add_flag("--json", flags->json, "the runs and their state as one JSON document on stdout");
  app->callback([flags] {
    report::RunSettings& settings = flags->request.settings;
    train::CheckThreads(settings.threads);
    if (const char* data = std::getenv("HKT_DATA"); settings.data.empty() && data != nullptr)
      settings.data = data;
    // This very file, also where it is replaced while the runs go on for days. The shared libraries
    // are those that then lie beside it, so that these are to stay.
    settings.program = "/proc/self/exe";
    settings.processor = DescribeEnvironment()["processor"].get<std::string>();
    Reproduce(*flags);
  });
}

const Subcommand kReproduce("reproduce", AddReproduce);

}  // namespace
}  // namespace hkt::cli
