// hkt predict: one text a line in, one label a line out; the job itself is hkt/train/predict.h.

#include "hkt/train/predict.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>

#include "cli/output.h"
#include "cli/subcommand.h"
#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/train/system.h"

namespace hkt::cli {
namespace {

struct PredictFlags {
  std::string run;
  std::optional<std::string> text;
  std::string file;
  int64_t threads = 0;
  bool json = false;
};

std::vector<std::string> Texts(const PredictFlags& flags) {
  CheckUsage(flags.text.has_value() != !flags.file.empty(),
             "give either --text \"…\" or a file with one text a line (-: stdin)");
  if (flags.text) return {*flags.text};
  if (flags.file != "-") return train::SplitLines(io::ReadFile(flags.file));
  return train::SplitLines(std::string(std::istreambuf_iterator<char>(std::cin), {}));
}

nlohmann::ordered_json ToJson(const train::Predictions& predictions) {
  nlohmann::ordered_json document = {{"classes", predictions.classes}};
  document["predictions"] = nlohmann::ordered_json::array();
  for (const train::Prediction& p : predictions.texts) {
    document["predictions"].push_back({{"label", p.name},
                                       {"probability", p.probability},
                                       {"probabilities", p.probabilities},
                                       {"truncated", p.truncated}});
  }
  return document;
}

void AddPredict(CLI::App& root) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* app = root.add_subcommand("predict", "classify texts with the best weights of a run");
  app->add_option("RUN", flags->run, "folder of the run")->required();
  app->add_option("FILE", flags->file, "a file with one text a line; -: standard input");
  app->add_option("--text", flags->text, "one text");
  app->add_option("--threads", flags->threads, "threads; 0: PyTorch's own choice");
  app->add_flag("--json", flags->json,
                "labels and all probabilities as one JSON document on stdout");
  app->callback([flags] {
    const std::vector<std::string> texts = Texts(*flags);
    train::SetThreads(flags->threads);
    const train::Predictions predictions = train::Predict(io::RunFolder(flags->run), texts);
    int64_t truncated = 0;
    for (const train::Prediction& p : predictions.texts) {
      truncated += p.truncated;
      if (!flags->json) std::printf("%s\t%.4f\n", p.name.c_str(), p.probability);
    }
    std::fflush(stdout);
    if (flags->json) PrintJson(ToJson(predictions));
    if (truncated > 0) {
      std::cerr << "hkt: warning: " << truncated << " of " << texts.size()
                << " texts were cut to the model's length" << std::endl;
    }
  });
}

const Subcommand kPredict("predict", AddPredict);

}  // namespace
}  // namespace hkt::cli
