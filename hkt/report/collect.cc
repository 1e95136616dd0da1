#include "hkt/report/collect.h"

#include <cmath>

#include "hkt/base/error.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/io/json_lines.h"
#include "hkt/io/safetensors.h"
#include "hkt/report/analysis_summary.h"
#include "hkt/report/exists.h"
#include "hkt/report/pack.h"
#include "hkt/report/result_file.h"
#include "hkt/report/rounded.h"

namespace hkt::report {
namespace {

namespace fs = std::filesystem;

Json ReadJson(const fs::path& path) {
  return io::ParseJson<Json>(io::ReadFile(path), path.string());
}

bool IsKind(const Json& line, const char* kind) {
  return line.is_object() && line.value("kind", Json()) == kind;
}

// The document is of the weights that lie in the folder now.
bool OfTheseWeights(const Json& document, const io::RunFolder& folder) {
  return document.is_object() && document.contains("weights") &&
         document["weights"].value("checksum", "") ==
             io::SafetensorsFile(folder.model()).checksum();
}

// eval.json and analysis.json are derived: one that cannot be read, or does not hold what a result
// takes from it, is made again.
template <class Test>
bool Holds(const fs::path& file, const io::RunFolder& folder, Test test) {
  if (!Exists(file) || !Exists(folder.model())) return false;
  try {
    const Json document = ReadJson(file);
    return OfTheseWeights(document, folder) && test(document);
  } catch (const std::exception&) {
    return false;
  }
}

// What `make` makes of a file; where a value is missing or of another kind, Error names the file.
template <class Make>
Json From(const fs::path& file, Make make) {
  try {
    return make();
  } catch (const nlohmann::json::exception& error) {
    Fail(file.string(), ": not as hkt writes it, or damaged: ", error.what());
  }
}

Json Curves(const std::vector<Json>& lines) {
  Json curve = {{"train", Json::array()}, {"validation", Json::array()}};
  for (const Json& line : lines) {
    if (IsKind(line, "train")) {
      curve["train"].push_back({line.at("step"), Rounded(line.at("loss"))});
    } else if (IsKind(line, "eval")) {
      curve["validation"].push_back({line.at("step"), line.at("accuracy"), Rounded(line.at("loss")),
                                     Rounded(line.at("seconds")),
                                     Rounded(line.value("cpu_seconds", Json()))});
    }
  }
  return curve;
}

// Of the last evaluation, or of the last one that was the best so far.
Json Point(const std::vector<Json>& lines, bool best) {
  Json point;
  for (const Json& line : lines) {
    if (IsKind(line, "eval") && (!best || line.at("best").get<bool>()))
      point = {
          {"step", line.at("step")}, {"accuracy", line.at("accuracy")}, {"loss", line.at("loss")}};
  }
  return point;
}

Json Test(const Json& report) {
  const auto labels = report.at("labels").get<std::vector<int32_t>>();
  const auto predicted = report.at("predicted").get<std::vector<int32_t>>();
  Check(labels.size() == predicted.size() && report.at("samples") == labels.size(),
        "labels and predictions differ in number");
  std::vector<int32_t> correct(labels.size());
  for (size_t i = 0; i < labels.size(); ++i) correct[i] = labels[i] == predicted[i] ? 1 : 0;
  const Json& classes = report.at("classes");
  const int bits = BitsFor(static_cast<int64_t>(classes.size()));
  Json test = {{"examples", report.at("samples")},
               {"accuracy", report.at("accuracy")},
               {"loss", report.at("loss")},
               {"majority", report.at("majority").at("share")},
               {"truncated", report.at("truncated")}};
  test["classes"] = test["recall"] = Json::array();
  for (const Json& row : classes) {
    test["classes"].push_back(row.at("name"));
    test["recall"].push_back(Rounded(row.at("recall")));
  }
  test["bits"] = bits;
  test["predicted"] = PackLabels(predicted, bits);
  test["correct"] = PackLabels(correct, 1);
  return test;
}

// eval.json has shares; counts are what statistics want.
Json Tallies(const Json& tallies, const char* key, bool number) {
  Json rows = Json::array();
  for (const auto& [name, tally] : tallies.items()) {
    const auto examples = tally.at("samples").get<int64_t>();
    const double share = tally.at("accuracy").is_null() ? 0 : tally.at("accuracy").get<double>();
    rows.push_back({{key, number ? Json(std::stoi(name)) : Json(name)},
                    {"examples", examples},
                    {"correct", std::llround(share * static_cast<double>(examples))}});
  }
  return rows;
}

// What of eval.json goes into a result: "test", and "by_depth" and "by_operator" of ListOps.
Json Evaluation(const Json& report) {
  Json result = {{"test", Test(report)}};
  if (report.contains("by_depth")) {
    result["by_depth"] = Tallies(report.at("by_depth"), "depth", true);
    result["by_operator"] = Tallies(report.at("by_root_operator"), "operator", false);
  }
  return result;
}

}  // namespace

RunProgress ReadProgress(const io::RunFolder& folder) {
  RunProgress progress;
  if (!Exists(folder.metrics())) return progress;
  for (const Json& json : io::ReadJsonLines(folder.metrics())) {
    const JsonReader line(json, folder.metrics().string(), "hkt train");
    if (!line.Has("step") || !line.Has("seconds")) continue;
    progress.step = line["step"].Count();
    progress.seconds = line["seconds"].Number();
    if (IsKind(json, "eval")) progress.accuracy = line["accuracy"].Share();
    progress.finished = IsKind(json, "end");
  }
  return progress;
}

bool IsEvaluated(const io::RunFolder& folder) {
  return Holds(folder.evaluation(), folder, [](const Json& document) {
    return document.value("split", "") == "test" && !Evaluation(document).empty();
  });
}

bool IsAnalyzed(const io::RunFolder& folder) {
  return Holds(folder.analysis(), folder, [](const Json& document) {
    return document.contains("initial") && !SummarizeAnalysis(document).empty();
  });
}

bool WantsAnalysis(const Config& config) {
  const ModelConfig& m = config.model;
  return m.levels.value_or(1) > 1 && m.downsample == "conv" && !m.undecimated;
}

Json Collect(const ExperimentRun& run, const io::RunFolder& folder, const std::string& processor) {
  const std::vector<Json> lines = io::ReadJsonLines(folder.metrics());
  Check(!lines.empty() && IsKind(lines.back(), "end"), folder.metrics().string(),
        ": the run has not ended; continue it with 'hkt train --resume --out ",
        folder.root().string(), "'");
  Check(IsEvaluated(folder), folder.evaluation().string(),
        ": not there, or not of the test split and of these weights; evaluate with 'hkt eval ",
        folder.root().string(), "'");
  const Json& end = lines.back();
  for (const char* key : {"parameters", "train_samples", "validation_samples"}) {
    Check(end.contains(key) && end[key].is_number_integer(), folder.metrics().string(),
          ": its last line has no ", key, ": an older hkt trained this run; remove ",
          folder.root().string(), " and train it again");
  }
  Json result = {{"format", kResultFormat}, {"tier", run.tier},   {"name", run.name},
                 {"row", run.row},          {"group", run.group}, {"task", run.config.data.task},
                 {"seed", run.seed}};
  result.update(From(folder.config(), [&] {
    Json config = ReadJson(folder.config());
    Json part = {{io::kVersionKey, config.at(io::kVersionKey)},
                 {"commit", end.value("commit", Json())},
                 {"processor", processor},
                 {"threads", config.at("threads")}};
    for (const char* key : {io::kVersionKey, "data", "threads"}) config.erase(key);
    part["config"] = config;
    return part;
  }));
  const Json evaluation = Evaluation(ReadJson(folder.evaluation()));
  result["parameters"] = end["parameters"];
  result["sizes"] = {{"train", end["train_samples"]},
                     {"validation", end["validation_samples"]},
                     {"test", evaluation["test"]["examples"]}};
  result.update(From(folder.metrics(), [&] {
    return Json{{"curve", Curves(lines)},
                {"best", Point(lines, /*best=*/true)},
                {"last", Point(lines, /*best=*/false)}};
  }));
  Check(!result["best"].is_null(), folder.metrics().string(), ": no evaluation in it");
  result.update(evaluation);
  result["time"] = From(folder.metrics(), [&] {
    return Json{{"wall_seconds", end.at("seconds")},
                {"cpu_seconds", end.value("cpu_seconds", Json())},
                {"peak_memory_bytes", end.at("peak_memory_bytes")}};
  });
  if (WantsAnalysis(run.config)) {
    Check(IsAnalyzed(folder), folder.analysis().string(),
          ": not there, or not of these weights; analyse with 'hkt analyze --init ",
          folder.root().string(), "'");
    result["analysis"] = SummarizeAnalysis(ReadJson(folder.analysis()));
  }
  return result;
}

}  // namespace hkt::report
