// hkt analyze: parsing and wiring; the job itself is hkt/analysis/analyze.h.

#include "hkt/analysis/analyze.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>

#include "cli/analyze_tables.h"
#include "cli/subcommand.h"
#include "hkt/io/json.h"

namespace hkt::cli {
namespace {

struct AnalyzeFlags {
  analysis::AnalyzeRequest request;
  bool json = false, quiet = false;
};

// One line on stderr: rewritten on a terminal, else a new one for each part of the work.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) != 0) {}
  ~ProgressLine() {
    if (terminal_ && !part_.empty()) std::cerr << "\r\033[K" << std::flush;
  }

  void Show(const std::string& what, int64_t done, int64_t all) {
    if (quiet_) return;
    if (terminal_) {
      std::cerr << "\r\033[K" << what << " " << done << "/" << all << std::flush;
    } else if (what != part_ || done == all) {
      std::cerr << what << " " << done << "/" << all << std::endl;
    }
    part_ = what;
  }

 private:
  bool quiet_, terminal_;
  std::string part_;
};

void AddAnalyze(CLI::App& root) {
  auto flags = std::make_shared<AnalyzeFlags>();
  analysis::AnalyzeRequest& request = flags->request;
  CLI::App* app = root.add_subcommand(
      "analyze", "the theory on the best weights of a run; writes analysis.json there");
  app->add_option("RUN", request.run, "folder of the run")->required();
  app->add_option("--compare", request.compare, "folder of a run to set beside it");
  app->add_flag("--init", request.initial, "the same on the model before training, beside it");
  app->add_option("--examples", request.examples,
                  "validation sequences for the accuracy with levels removed")
      ->capture_default_str();
  app->add_option("--pairs", request.pairs, "token pairs drawn from each sequence")
      ->capture_default_str();
  app->add_option_function<std::string>(
         "--weights",
         [&request](const std::string& name) { request.attention_weights = name == "attention"; },
         "pairs of the error terms: uniform (all alike, the default) or attention")
      ->check(CLI::IsMember({"uniform", "attention"}))
      ->type_name("uniform|attention");
  CLI::Option* example =
      app->add_option("--example", request.example,
                      "sequence of the validation split to show, from 0 (default: one drawn)");
  app->add_option("--text", request.text,
                  "a text of your own to show instead, whole as the model reads it")
      ->excludes(example);
  app->add_option("--export", request.export_to,
                  "folder for the example's matrices in full, as safetensors and CSV")
      ->type_name("DIR");
  app->add_option("--data", request.data,
                  "archive or folder of the data (default: as in training)");
  app->add_option("--threads", request.threads, "threads; 0: PyTorch's own choice");
  app->add_flag("--quiet", flags->quiet, "no progress");
  app->add_flag("--json", flags->json, "what goes into analysis.json, on stdout");
  app->callback([flags] {
    nlohmann::ordered_json document;
    {
      ProgressLine line(flags->quiet);
      document = analysis::Analyze(
          flags->request,
          [&](const std::string& what, int64_t done, int64_t all) { line.Show(what, done, all); });
    }
    // First into the folder, so that a reader that closes the pipe early does not cost the file;
    // and the figures are printed even where the folder cannot be written.
    std::exception_ptr not_written;
    try {
      analysis::WriteAnalysis(flags->request.run, document);
    } catch (...) {
      not_written = std::current_exception();
    }
    if (flags->json) {
      std::cout << io::PrettyJson(document) << std::flush;  // a row of a matrix a line
    } else {
      PrintAnalysis(document);
    }
    std::fflush(stdout);
    if (not_written) std::rethrow_exception(not_written);
  });
}

const Subcommand kAnalyze("analyze", AddAnalyze);

}  // namespace
}  // namespace hkt::cli
