// hkt predict: one text a line in, one prediction a line out; the job itself is
// hkt/train/predict.h.

#include "hkt/train/predict.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "cli/output.h"
#include "cli/subcommand.h"
#include "hkt/base/error.h"
#include "hkt/data/task.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/train/prediction_format.h"
#include "hkt/train/system.h"
#include "hkt/train/text_lines.h"

namespace hkt::cli {
namespace {

using Json = nlohmann::ordered_json;

struct PredictFlags {
  std::string run;
  std::optional<std::string> text;
  std::string file;
  std::optional<std::string> format;
  std::string out;
  std::optional<int64_t> batch;
  int64_t threads = 0;
  bool json = false;
};

// --text: a source of one sample.
class OneText : public train::SampleSource {
 public:
  explicit OneText(train::Sample sample) : sample_(std::move(sample)) {}
  bool Next(train::Sample* sample) override {
    if (!sample_) return false;
    *sample = *std::exchange(sample_, std::nullopt);
    return true;
  }

 private:
  std::optional<train::Sample> sample_;
};

std::unique_ptr<train::SampleSource> Open(const PredictFlags& flags, const DataConfig& config) {
  if (data::TakesImages(config) && !flags.text) {
    constexpr size_t kMaxImageBytes = size_t{1} << 30;
    const train::Stream stream(flags.file);
    return std::make_unique<train::DatasetSource>(data::EncodeImages(
        config, io::ReadStream(stream.descriptor(), stream.name(), kMaxImageBytes), stream.name()));
  }
  if (!flags.text) return std::make_unique<train::TextLines>(config, flags.file);
  train::Sample sample = train::EncodeText(config, *flags.text, "--text");
  CheckUsage(!sample.tokens.empty(), "--text is blank; give a text to classify");
  return std::make_unique<OneText>(std::move(sample));
}

// Standard output, flushed with every window; or a file, which is there once it is whole. What is
// no regular file (a pipe, /dev/stdout) is written as it comes.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (path.empty() || path == "-") return;
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
      stream_ = std::fopen(path.c_str(), "w");
      name_ = path;
      if (stream_ == nullptr) throw Error(io::SystemMessage("write", path, errno));
    } else {
      file_.emplace(path);
    }
  }
  ~Output() {
    if (stream_ != stdout) std::fclose(stream_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  void Write(const std::string& text) {
    if (file_) return file_->Write(text);
    const bool written = std::fwrite(text.data(), 1, text.size(), stream_) == text.size();
    if (!written || std::fflush(stream_) != 0)
      throw Error(io::SystemMessage("write", name_, errno));
  }
  void Commit() {
    if (file_) file_->Commit();
  }

 private:
  std::optional<io::AtomicFile> file_;
  std::FILE* stream_ = stdout;
  std::string name_ = "standard output";
};

struct Tally {
  int64_t samples = 0, truncated = 0, blank = 0;
};

void Warn(const Tally& tally) {
  if (tally.truncated > 0) {
    std::cerr << "hkt: warning: " << tally.truncated << " of " << tally.samples
              << " texts were cut to the model's length" << std::endl;
  }
  if (tally.blank > 0) {
    std::cerr << "hkt: warning: " << tally.blank << " of " << tally.samples
              << " lines are blank and have no prediction" << std::endl;
  }
}

void Run(const PredictFlags& flags) {
  CheckUsage(flags.text.has_value() != !flags.file.empty(),
             "give either --text \"…\" or a file with one text a line (-: stdin)");
  CheckUsage(!flags.json || flags.format.value_or("json") == "json", "--json and --format ",
             flags.format.value_or(""), " exclude each other");
  const bool document = flags.json || flags.format == "json";
  const auto format = document ? train::PredictionFormat::kText
                               : train::ParsePredictionFormat(flags.format.value_or("text"));
  CheckUsage(flags.batch.value_or(1) >= 1 && flags.batch.value_or(1) <= kMaxBatch, "--batch is ",
             flags.batch.value_or(1), ", must be from 1 to ", kMaxBatch);
  train::SetThreads(flags.threads);
  train::TuneAllocator();
  const train::Predictor predictor((io::RunFolder(flags.run)));
  const auto source = Open(flags, predictor.config().data);
  Output output(flags.out);

  const size_t classes = predictor.classes().size();
  Json predictions = Json::array();
  Tally tally;
  if (!document) output.Write(train::FormatHead(format, predictor.classes()));
  const train::PredictOptions options = {.batch =
                                             flags.batch.value_or(predictor.config().train.batch)};
  predictor.Predict(*source, options, [&](const std::vector<train::Prediction>& window) {
    std::string text;
    for (const train::Prediction& p : window) {
      ++tally.samples;
      tally.truncated += p.truncated;
      tally.blank += p.blank;
      if (document) {
        predictions.push_back(train::ToJson(p));
      } else {
        text += train::FormatPrediction(format, p, classes);
      }
    }
    if (!document) output.Write(text);
  });
  if (document) {
    const Json whole = {{"classes", predictor.classes()}, {"predictions", std::move(predictions)}};
    output.Write(JsonText(whole));
  }
  output.Commit();
  Warn(tally);
}

void AddPredict(CLI::App& root) {
  auto flags = std::make_shared<PredictFlags>();
  CLI::App* app = root.add_subcommand("predict", "classify texts with the best weights of a run");
  app->add_option("RUN", flags->run, "folder of the run")->required();
  app->add_option("FILE", flags->file, "a file with one text a line; -: standard input");
  app->add_option("--text", flags->text, "one text");
  app->add_option("--format", flags->format,
                  "text (label and probability), csv, jsonl (a JSON document a line) or json (one "
                  "document at the end)");
  app->add_option("-o,--output", flags->out,
                  "file to write; it is replaced once all is done (default and -: standard output, "
                  "flushed with every batch)")
      ->type_name("FILE");
  app->add_option("--batch", flags->batch, "sequences a batch (default: as in training)");
  app->add_option("--threads", flags->threads, "threads; 0: PyTorch's own choice");
  app->add_flag("--json", flags->json, "the same as --format json");
  app->callback([flags] { Run(*flags); });
}

const Subcommand kPredict("predict", AddPredict);

}  // namespace
}  // namespace hkt::cli
