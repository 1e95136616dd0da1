// hkt report: parsing and wiring; the document is hkt/report/report.h's, the page page.h's.

#include "hkt/report/report.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/output.h"
#include "cli/subcommand.h"
#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/report/page.h"

namespace hkt::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ReportFlags {
  report::ReportRequest request;
  std::string experiments, output, markdown;
  bool no_example = false, json = false;
};

void PrintWritten(const std::string& path, size_t bytes) {
  std::printf("%s (%.2f MB)\n", path.c_str(), static_cast<double>(bytes) / 1e6);
}

void PrintState(const Json& experiments) {
  std::printf("tier %s: %ld of %ld runs\n", experiments["tier"].get<std::string>().c_str(),
              static_cast<long>(experiments["runs_done"].get<int64_t>()),
              static_cast<long>(experiments["runs_planned"].get<int64_t>()));
}

void RunReport(const ReportFlags& flags) {
  report::ReportRequest request = flags.request;
  request.example = !flags.no_example;
  const Json document = report::MakeReport(request);
  if (flags.json) PrintJson(document);
  if (!flags.json && !document["experiments"].is_null()) PrintState(document["experiments"]);
  if (!flags.markdown.empty()) {
    const std::string text = report::MakeMarkdown(document);
    io::WriteFileAtomically(flags.markdown, text);
    if (!flags.json) PrintWritten(flags.markdown, text.size());
  }
  // With --json or --markdown alone no page is asked for.
  const bool page = !flags.output.empty() || (!flags.json && flags.markdown.empty());
  if (!page) return;
  const std::string output = flags.output.empty() ? "report.html" : flags.output;
  const std::string text = report::MakePage(document);
  io::WriteFileAtomically(output, text);
  if (!flags.json) PrintWritten(output, text.size());
}

void AddReport(CLI::App& root) {
  auto flags = std::make_shared<ReportFlags>();
  CLI::App* app = root.add_subcommand(
      "report", "one page, to be opened from disk, that shows runs and experiments");
  app->add_option("RUN", flags->request.runs, "folders of runs");
  app->add_option("--experiments", flags->experiments,
                  "the experiments' results as well, from the folder that follows, if one does "
                  "(default: experiments)")
      ->type_name("DIR")
      ->expected(0, 1);
  app->add_option("--tier", flags->request.tier, "which of the experiments")->capture_default_str();
  app->add_option("-o,--output", flags->output, "the page (default: report.html)");
  app->add_option("--markdown", flags->markdown,
                  "the experiments' tables as Markdown, into this file; alone, no page is written");
  app->add_flag("--no-example", flags->no_example,
                "leave out the runs' examples: their tokens and their matrices");
  app->add_flag("--json", flags->json,
                "what the page shows, as one JSON document on stdout; alone, no page is written");
  app->callback([flags, app] {
    if (app->count("--experiments") > 0)
      flags->request.experiments = flags->experiments.empty() ? "experiments" : flags->experiments;
    CheckUsage(flags->markdown.empty() || flags->request.experiments,
               "--markdown writes the experiments' tables; give --experiments");
    RunReport(*flags);
  });
}

const Subcommand kReport("report", AddReport);

}  // namespace
}  // namespace hkt::cli
