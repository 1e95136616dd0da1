// hkt eval: parsing and printing; the job itself is hkt/train/jobs.h.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/output.h"
#include "cli/subcommand.h"
#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/train/jobs.h"

namespace hkt::cli {
namespace {

using Json = nlohmann::ordered_json;

struct EvalFlags {
  train::EvaluateRequest request;
  bool json = false;
};

std::string Percent(const Json& share) {
  if (share.is_null()) return "-";
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f %%", 100 * share.get<double>());
  return text;
}

void PrintTallies(const char* title, const Json& tallies) {
  std::printf("%s\n", title);
  for (const auto& [key, tally] : tallies.items()) {
    std::printf("  %-12s %8ld samples  accuracy %s\n", key.c_str(),
                static_cast<long>(tally["samples"].get<int64_t>()),
                Percent(tally["accuracy"]).c_str());
  }
}

void PrintReport(const Json& report) {
  std::printf("%s on %s %s: accuracy %s (standard error %s), loss %.4f, %s, majority class %s\n",
              report["model"].get<std::string>().c_str(), report["task"].get<std::string>().c_str(),
              report["split"].get<std::string>().c_str(), Percent(report["accuracy"]).c_str(),
              Percent(report["standard_error"]).c_str(), report["loss"].get<double>(),
              Counted(report["samples"], "sample").c_str(),
              Percent(report["majority"]["share"]).c_str());
  if (const auto truncated = report["truncated"].get<int64_t>(); truncated > 0) {
    std::printf("%s longer than seq_len and cut\n",
                Counted(truncated, "sample was", "samples were").c_str());
  }
  std::printf("by class\n");
  for (const Json& row : report["classes"]) {
    std::printf("  %-12s %8ld samples  recall %-8s  precision %s\n",
                Printable(row["name"].get<std::string>()).c_str(),
                static_cast<long>(row["samples"].get<int64_t>()), Percent(row["recall"]).c_str(),
                Percent(row["precision"]).c_str());
  }
  if (report.contains("by_depth")) PrintTallies("by depth of the expression", report["by_depth"]);
  if (report.contains("by_root_operator"))
    PrintTallies("by root operator", report["by_root_operator"]);
}

void AddEval(CLI::App& root) {
  auto flags = std::make_shared<EvalFlags>();
  CLI::App* app = root.add_subcommand(
      "eval", "evaluate the best weights of a run on a split; writes eval.json there");
  app->add_option("RUN", flags->request.run, "folder of the run")->required();
  app->add_option("--split", flags->request.split, "test or validation")->capture_default_str();
  app->add_option("--data", flags->request.data,
                  "archive or folder of the data (default: as in training)");
  app->add_option("--batch", flags->request.batch, "sequences a batch (default: as in training)");
  app->add_option("--threads", flags->request.threads, "threads; 0: PyTorch's own choice");
  app->add_flag("--json", flags->json,
                "the report as one JSON document on stdout, as in eval.json");
  app->callback([flags] {
    CheckUsage(flags->request.split == "test" || flags->request.split == "validation",
               "--split is '", flags->request.split, "', must be test or validation");
    const int64_t batch = flags->request.batch.value_or(1);
    CheckUsage(batch >= 1 && batch <= kMaxBatch, "--batch is ", batch, ", must be from 1 to ",
               kMaxBatch);
    const Json report = train::EvaluateRun(flags->request);
    if (flags->json) {
      PrintJson(report);
    } else {
      PrintReport(report);
    }
    std::fflush(stdout);  // the figures are out even where the folder cannot be written
    train::WriteEvaluation(flags->request.run, report);
  });
}

const Subcommand kEval("eval", AddEval);

}  // namespace
}  // namespace hkt::cli
