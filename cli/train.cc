// hkt train: parsing and printing; the job itself is hkt/train/jobs.h.

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/config_options.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "hkt/base/error.h"
#include "hkt/base/status.h"
#include "hkt/base/text.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/train/dry_run.h"
#include "hkt/train/jobs.h"
#include "hkt/train/progress.h"
#include "hkt/train/signals.h"
#include "hkt/train/system.h"

namespace hkt::cli {
namespace {

struct TrainFlags {
  train::RunRequest request;
  bool dry_run = false, quiet = false, json = false;
};

// The file's keys count as given, as flags do: a resumed run must not contradict them.
void ReadConfigFile(const std::string& path, train::RunRequest* request) {
  const auto document = io::ParseJson<nlohmann::ordered_json>(io::ReadFile(path), path);
  io::FromJson(document, request->config, path);
  for (const auto& [key, value] : document.items()) {
    if (key != io::kVersionKey) request->given.insert(key);
  }
}

void CollectGivenFlags(const CLI::App& app, train::RunRequest* request) {
  Config::Visit(request->config,
                [&](std::string_view name, auto&, std::string_view, const Limits&) {
                  std::string flag = "--" + std::string(name);
                  for (char& c : flag) c = c == '_' ? '-' : c;
                  if (app.get_option(flag)->count() > 0) request->given.insert(std::string(name));
                });
}

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f %%", 100 * share);
  return text;
}

void PrintStart(const train::TrainStart& start) {
  const ModelConfig& m = start.config.model;
  std::cerr << (start.resumed ? "resuming " : "run ") << Printable(start.folder.root().string())
            << ": " << m.model << " on " << start.task.name << ", "
            << train::FormatCount(start.parameters) << " parameters, levels " << *m.levels
            << ", gates " << (*m.hybrid ? "on" : "off") << ", score_gain " << m.score_gain
            << ", seq_len " << start.task.seq_len << ", " << Counted(train::Threads(), "thread")
            << "\n"
            << "data: " << train::FormatCount(start.train_samples) << " for training, "
            << train::FormatCount(start.validation_samples) << " for validation";
  if (start.truncated > 0) {
    std::cerr << ", " << train::FormatCount(start.truncated) << " cut to " << start.task.seq_len
              << " tokens";
  }
  std::cerr << std::endl;
  if (start.config.train.overfit_batch) {
    std::cerr << "overfit-batch: trains on these " << Counted(start.train_samples, "sequence")
              << " alone and evaluates on them, dropout " << start.config.model.dropout
              << "; for debugging, it says nothing about other data" << std::endl;
  }
  if (start.resumed && !start.finished) {
    std::cerr << "from step " << start.progress.step << " of " << start.config.train.steps
              << std::endl;
  }
}

// "block 0: 0.31 0.33 0.36" a block, the mean over the heads of every level.
std::string Levels(const nlohmann::ordered_json& layers) {
  std::string text;
  for (size_t i = 0; i < layers.size(); ++i) {
    text += (i > 0 ? ", block " : "block ") + std::to_string(i) + ":";
    for (const auto& mean : layers[i]["mean"]) {
      char number[16];
      std::snprintf(number, sizeof(number), " %.3f", mean.get<double>());
      text += number;
    }
  }
  return text;
}

void PrintPoint(const char* name, const train::TrainSummary& summary,
                const train::ValidationPoint& point) {
  std::cout << name
            << (summary.start.config.train.overfit_batch ? " accuracy on the one batch "
                                                         : " validation accuracy ")
            << Percent(point.accuracy) << " at step " << point.step << ", loss " << point.loss;
}

void PrintEnd(const train::TrainSummary& summary) {
  const train::Progress& p = summary.progress;
  const io::RunFolder& folder = summary.start.folder;
  const bool ended =
      summary.end == train::TrainEnd::kFinished || summary.end == train::TrainEnd::kPatience;
  if (summary.start.finished) {
    std::cout << "this run is finished, there is nothing to do; for a longer one choose another "
                 "--out and --steps"
              << (summary.end == train::TrainEnd::kPatience ? ", or go on with a larger --patience"
                                                            : "")
              << "\n";
  } else if (summary.end == train::TrainEnd::kPatience) {
    std::cout << "stopped early after step " << p.step << " of " << summary.start.config.train.steps
              << ": "
              << Counted(p.evaluations_since_best, "evaluation in a row was",
                         "evaluations in a row were")
              << " no better\n";
  } else if (!ended) {
    std::cout << (summary.end == train::TrainEnd::kTimeUp ? "time is up" : "stopped")
              << " after step " << p.step << " of " << summary.start.config.train.steps << "\n";
  }
  if (p.best) {
    PrintPoint("best", summary, *p.best);
    std::cout << " (majority class " << Percent(summary.majority_share) << ")\n";
  }
  if (p.last && p.best && p.last->step != p.best->step) {
    PrintPoint("last", summary, *p.last);
    std::cout << "\n";
  }
  if (p.skipped > 0) {
    std::cout << Counted(p.skipped, "step was", "steps were")
              << " skipped: loss or gradient not finite\n";
  }
  const double seconds = std::max(p.step_seconds, 1e-9);
  std::cout << Counted(p.step, "step") << " in " << train::FormatDuration(p.elapsed_seconds) << ", "
            << train::FormatCount(static_cast<int64_t>(static_cast<double>(p.tokens) / seconds))
            << " tokens per second";
  if (std::isfinite(p.multiply_adds)) {
    char rate[32];
    std::snprintf(rate, sizeof(rate), ", %.2f GFLOP/s",
                  train::kFlopsPerMultiplyAdd * p.multiply_adds / seconds / 1e9);
    std::cout << rate;
  }
  std::cout << ", peak memory " << (summary.peak_memory_bytes >> 20) << " MiB\n";
  if (summary.fusion.contains("lambda"))
    std::cout << "level weights (lambda) " << Levels(summary.fusion["lambda"]) << "\n";
  if (summary.fusion.contains("gate"))
    std::cout << "gates (beta; 1 is attention) " << Levels(summary.fusion["gate"]) << "\n";
  if (p.best) std::cout << "weights " << Printable(folder.model().string()) << ", ";
  std::cout << "metrics " << Printable(folder.metrics().string()) << ", "
            << (ended ? "next: " : "continue with: ") << train::NextCommand(summary) << std::endl;
}

void PrintDryRun(const TrainFlags& flags) {
  Config config = flags.request.config;
  Resolve(config);
  train::SetThreads(config.train.threads);
  train::TuneAllocator();
  const train::DryRunReport report = train::DryRun(config);
  if (flags.json) {
    nlohmann::ordered_json document = train::ToJson(report);
    document["config"] = io::ToJson(config);
    PrintJson(document);
    return;
  }
  std::printf(
      "model %s: %s parameters, levels %ld, gates %s, score_gain %g\n"
      "batch of %ld x %ld, %ld a step, every sequence at full length (real data are shorter), %ld "
      "threads\n"
      "peak memory %.0f MiB, libraries included\n"
      "%.3f s a step, %s tokens per second; %ld steps take %s\n",
      config.model.model.c_str(), train::FormatCount(report.parameters).c_str(),
      static_cast<long>(*config.model.levels), *config.model.hybrid ? "on" : "off",
      config.model.score_gain, static_cast<long>(config.train.batch),
      static_cast<long>(report.seq_len), static_cast<long>(config.train.accumulate),
      static_cast<long>(report.threads), static_cast<double>(report.peak_memory_bytes) / (1 << 20),
      report.median_step_seconds,
      train::FormatCount(static_cast<int64_t>(report.tokens_per_second)).c_str(),
      static_cast<long>(config.train.steps),
      train::FormatDuration(report.median_step_seconds * static_cast<double>(config.train.steps))
          .c_str());
}

void Train(const TrainFlags& flags) {
  if (flags.quiet) ShowStatus(false);
  std::optional<train::SignalGuard> signals;
  const auto style = train::ProgressPrinter::StyleFor(flags.quiet);
  const auto begin = [&](const train::TrainStart& start) {
    signals.emplace();  // from here on there is something to save; before, a signal just ends the
                        // process
    if (!flags.quiet) PrintStart(start);
    return std::make_unique<train::ProgressPrinter>(style, start.config.train.steps,
                                                    start.progress.step);
  };
  const train::TrainSummary summary =
      train::TrainRun(flags.request, begin, [] { return train::SignalGuard::Received() != 0; });
  if (flags.json) {
    PrintJson(train::ToJson(summary));
  } else {
    PrintEnd(summary);
  }
  if (summary.end == train::TrainEnd::kStopped) throw SignalExit{train::SignalGuard::Received()};
}

void AddTrain(CLI::App& root) {
  auto flags = std::make_shared<TrainFlags>();
  CLI::App* app =
      root.add_subcommand("train", "train a model; the run goes into a folder of its own");
  AddConfigFile(*app, [flags](const std::string& path) { ReadConfigFile(path, &flags->request); });
  AddConfigOptions(*app, flags->request.config);
  app->add_option("--out", flags->request.out,
                  "folder of the run (default: the next free runs/<task>-<model>-<n>)")
      ->type_name("DIR");
  app->add_flag("--resume", flags->request.resume,
                "continue the run in --out, with the configuration stored there");
  app->add_option("--from-step", flags->request.from_step,
                  "with --resume: from the state after this step, kept by --keep-states; what came "
                  "after it is removed")
      ->type_name("N");
  app->add_flag("--dry-run", flags->dry_run,
                "parameters, memory and seconds a step on random data; trains nothing");
  app->add_flag("--quiet", flags->quiet, "no progress, only the result and warnings");
  app->add_flag("--json", flags->json, "the result as one JSON document on stdout");
  app->callback([app, flags] {
    CollectGivenFlags(*app, &flags->request);
    if (flags->dry_run) {
      CheckUsage(
          !flags->request.resume,
          "--dry-run and --resume exclude each other; give the run's config.json with --config");
      PrintDryRun(*flags);
    } else {
      Train(*flags);
    }
  });
}

const Subcommand kTrain("train", AddTrain);

}  // namespace
}  // namespace hkt::cli
