// One run folder: what of its files the page shows.

#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "hkt/base/error.h"
#include "hkt/io/config_json.h"
#include "hkt/io/json_lines.h"
#include "hkt/io/run_folder.h"
#include "hkt/report/base64.h"
#include "hkt/report/exists.h"
#include "hkt/report/json_reader.h"
#include "hkt/report/report.h"

namespace hkt::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostRows = 256;      // of a heat map: what hkt analyze writes at most
constexpr double kMostFloat = 3.4e38;  // what rounding in PackMatrix leaves finite
constexpr int64_t kMostShape = 1 << 16;
constexpr const char* kAnalyze = "hkt analyze";
constexpr const char* kEval = "hkt eval";

// Training losses and validation figures from metrics.jsonl.
Json Curves(const std::filesystem::path& path) {
  Json training = Json::array(), validation = Json::array();
  for (const Json& document : io::ReadJsonLines(path)) {
    const JsonReader line(document, path.string(), "hkt train");
    const std::string kind = line["kind"].Text();
    if (kind == "train") {
      const JsonReader loss = line["loss"];
      if (!loss.json().is_null()) loss.Number();
      training.push_back({line["step"].Count(), loss.json()});
    } else if (kind == "eval") {
      const Json cpu = line.Has("cpu_seconds") ? Json(line["cpu_seconds"].Number()) : Json(nullptr);
      const JsonReader loss = line["loss"];
      if (!loss.json().is_null()) loss.Number();
      validation.push_back({line["step"].Count(), line["accuracy"].Share(), loss.json(),
                            line["seconds"].Number(), cpu});
    }
  }
  return {{"training_curve", training}, {"validation_curve", validation}};
}

// {key: {samples, accuracy}, …} as a list.
Json Tallies(const JsonReader& file, const char* list, const char* key) {
  if (!file.Has(list)) return nullptr;
  Json rows = Json::array();
  for (const auto& [name, tally] : file[list].json().items()) {
    Json row = {{key, name}};
    row.update(file[list][name].Pick({"samples", "accuracy"}));
    rows.push_back(row);
  }
  return rows;
}

Json Evaluation(const std::filesystem::path& path) {
  Json storage;
  const JsonReader file = JsonReader::Read(path, kEval, storage);
  io::CheckWrittenBy(file["hkt_version"].Text(), path.string());
  Json result = file.Pick({"split", "samples", "accuracy", "standard_error", "loss"});
  file["accuracy"].Share();
  result["checksum"] = file["weights"]["checksum"].Text();
  result["majority"] = file["majority"].Pick({"class", "share"});
  result["classes"] = file["classes"].PickRows({"name", "samples", "recall", "precision"});
  result["by_depth"] = Tallies(file, "by_depth", "depth");
  result["by_operator"] = Tallies(file, "by_root_operator", "operator");
  return result;
}

// A matrix as hkt analyze writes it, rows of numbers, row r of a causal one with r + 1 of them, in
// an eighth of the text: every number is a float32 without its lowest byte (16 bits of significand,
// four significant digits have 14), the highest byte first, three bytes a number in base64.
Json PackMatrix(const JsonReader& matrix) {
  const std::vector<JsonReader> rows = matrix.Items();
  if (rows.size() > kMostRows) matrix.FailHere(Concat("at most ", kMostRows, " rows"));
  const bool causal = rows.size() > 1 && rows.front().json().size() == 1;
  std::vector<uint8_t> bytes;
  bytes.reserve(rows.size() * rows.size() * 3);
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::vector<JsonReader> row = rows[r].Items();
    const size_t expected = causal ? r + 1 : rows.size();
    if (row.size() != expected) rows[r].FailHere(Concat("a list of ", expected, " numbers"));
    for (const JsonReader& value : row) {
      const double number = value.Number();
      if (std::abs(number) > kMostFloat) value.FailHere("a float32 number");
      auto bits = std::bit_cast<uint32_t>(static_cast<float>(number));
      bits += 0x80;  // rounds; a carry goes into the exponent as it should
      for (const int shift : {24, 16, 8}) bytes.push_back(static_cast<uint8_t>(bits >> shift));
    }
  }
  return {{"rows", rows.size()}, {"causal", causal}, {"values", EncodeBase64(bytes)}};
}

Json Example(const JsonReader& file) {
  Json result = file.Pick(
      {"index", "length", "label", "predicted", "probability", "tokens", "tokens_per_row"});
  for (const JsonReader& token : file["tokens"].Items()) token.Text();
  if (file["tokens"].json().size() != static_cast<size_t>(file["length"].Count()) ||
      file["tokens_per_row"].Count() < 1)
    file["tokens"].FailHere("as long as 'length'");
  Json matrices = Json::array();
  for (const JsonReader& head : file["matrices"].Items()) {
    Json entry = {{"layer", head["layer"].Count()},
                  {"head", head["head"].Count()},
                  {"attention", PackMatrix(head["attention"])}};
    entry["levels"] = Json::array();
    for (const JsonReader& level : head["levels"].Items()) {
      Json part = level.Pick({"level", "positions", "tokens_per_row"});
      level["positions"].Count();
      if (level["tokens_per_row"].Count() < 1) level["tokens_per_row"].FailHere("at least 1");
      part["scores"] = PackMatrix(level["scores"]);
      entry["levels"].push_back(part);
    }
    matrices.push_back(entry);
  }
  result["matrices"] = matrices;
  return result;
}

// The subjects of one analysis; those that hkt analyze passed over are left out.
Json Subjects(const JsonReader& file) {
  Json result = Json::object();
  if (file.Has("kernel")) {
    result["kernel"] = Json::array();
    for (const JsonReader& level : file["kernel"]["levels"].Items()) {
      Json row = level.Pick({"layer", "head", "level", "positive", "negative", "zero",
                             "negative_share", "negative_energy", "min", "max", "trace"});
      // Since 0.1: an older hkt analyze did not write the spectrum itself.
      row["eigenvalues"] = level.Has("eigenvalues") ? level["eigenvalues"].json() : Json(nullptr);
      if (level.Has("eigenvalues")) {
        for (const JsonReader& value : level["eigenvalues"].Items()) value.Number();
      }
      result["kernel"].push_back(row);
    }
  }
  if (file.Has("direction"))
    result["direction"] = file["direction"]["levels"].PickRows(
        {"layer", "head", "level", "alpha", "expected", "deviation", "z", "alpha_data"});
  if (file.Has("kurtosis")) {
    result["score_kurtosis"] =
        file["kurtosis"]["scores"].PickRows({"layer", "head", "level", "kurtosis", "median"});
    result["mardia"] =
        file["kurtosis"]["levels"].PickRows({"layer", "level", "kappa", "gaussian", "gamma"});
  }
  if (file.Has("mixture")) {
    result["mixture"] = file["mixture"]["levels"].PickRows(
        {"layer", "head", "level", "lambda", "beta", "weight", "variance_share", "distance_alone"});
    result["heads"] = file["mixture"]["heads"].PickRows(
        {"layer", "head", "attention_share", "relative_entropy", "distance", "uniform_distance"});
  }
  if (file.Has("levels_removed"))
    result["levels_removed"] = file["levels_removed"]["rows"].PickRows(
        {"removed", "accuracy", "loss", "change", "change_standard_error", "predictions_changed"});
  return result;
}

Json Analysis(const std::filesystem::path& path, bool example) {
  Json storage;
  const JsonReader file = JsonReader::Read(path, kAnalyze, storage);
  io::CheckWrittenBy(file["hkt_version"].Text(), path.string());
  Json result = Subjects(file);
  result["checksum"] = file["weights"]["checksum"].Text();
  result["shape"] = file["shape"].Pick({"layers", "heads", "d_model", "head_width", "levels",
                                        "stride", "hybrid", "psd", "causal", "score_gain"});
  for (const char* key : {"layers", "heads", "d_model", "head_width", "levels", "stride"}) {
    const JsonReader count = file["shape"][key];
    if (count.Count() < 1 || count.Count() > kMostShape)
      count.FailHere(Concat("from 1 to ", kMostShape));
  }
  result["skipped"] = file["skipped"].PickRows({"subject", "reason"});
  result["published"] =
      file["published"].PickRows({"name", "subject", "published", "value", "here", "note"});
  if (file.Has("cost")) {
    const JsonReader cost = file["cost"];
    const auto keys = {"part", "standard", "this", "ratio"};
    result["cost"] = cost.Pick({"tokens", "score_factor", "score_factor_limit"});
    result["cost"]["causal"] = cost["causal"].PickRows(keys);
    result["cost"]["all_pairs"] = cost["all_pairs"].PickRows(keys);
    result["cost"]["parameters"] = cost["parameters"].Pick(keys);
  }
  result["initial"] = file.Has("initial") ? Subjects(file["initial"]) : Json(nullptr);
  result["example"] = example && file.Has("example") ? Example(file["example"]) : Json(nullptr);
  return result;
}

}  // namespace

Json ReportRun(const std::filesystem::path& root, bool example) {
  const io::RunFolder folder(root);
  const Config config = folder.ReadConfig();
  std::string name = root.lexically_normal().string();
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  Json result = {{"name", name}};
  result["config"] = io::ToJson(config);
  result["config"].erase("data");  // a path of the machine
  result.update(Exists(folder.metrics())
                    ? Curves(folder.metrics())
                    : Json{{"training_curve", Json::array()}, {"validation_curve", Json::array()}});
  result["evaluation"] =
      Exists(folder.evaluation()) ? Evaluation(folder.evaluation()) : Json(nullptr);
  result["analysis"] =
      Exists(folder.analysis()) ? Analysis(folder.analysis(), example) : Json(nullptr);
  // Trained further since one of them was written: the two then speak of different models.
  result["same_weights"] = result["evaluation"].is_null() || result["analysis"].is_null() ||
                           result["evaluation"]["checksum"] == result["analysis"]["checksum"];
  result["example_left_out"] = !example;
  return result;
}

}  // namespace hkt::report
