#include "hkt/report/result_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "hkt/io/file.h"
#include "hkt/io/run_folder.h"
#include "hkt/report/statistics.h"

namespace hkt::report {
namespace {

using Json = nlohmann::ordered_json;

// A list of lists of `columns` numbers; from `optional` on a column may be null.
Json Points(const JsonReader& list, size_t columns, size_t optional) {
  for (const JsonReader& point : list.Items()) {
    const std::vector<JsonReader> values = point.Items();
    if (values.size() != columns) point.FailHere(Concat("a list of ", columns, " numbers"));
    for (size_t i = 0; i < columns; ++i) {
      if (i < optional || !values[i].json().is_null()) values[i].Number();
    }
  }
  return list.json();
}

// Lists of {<key>, examples, correct}.
Json Tallies(const JsonReader& file, const char* list, const char* key) {
  if (!file.Has(list)) return nullptr;
  for (const JsonReader& item : file[list].Items()) {
    if (item["correct"].Count() > item["examples"].Count())
      item["correct"].FailHere("at most 'examples'");
  }
  return file[list].PickRows({key, "examples", "correct"});
}

// Of each head its levels' figures, and means over layers and heads: lists of numbers or null.
Json Analysis(const JsonReader& file) {
  const auto check = [](const JsonReader& figures) {
    if (!figures.json().is_object()) figures.FailHere("an object");
    for (const auto& [name, list] : figures.json().items()) {
      const JsonReader values = figures[name];
      if (name == "layer" || name == "head") {
        values.Count();
        continue;
      }
      for (const JsonReader& value : values.Items()) {
        if (!value.json().is_null()) value.Number();
      }
    }
  };
  for (const JsonReader& head : file["heads"].Items()) check(head);
  check(file["levels"]);
  if (file.Has("levels_initial")) check(file["levels_initial"]);
  if (file.Has("levels_removed")) {
    file["levels_removed"].PickRows({"removed", "accuracy", "change", "change_standard_error"});
  }
  return file.json();
}

}  // namespace

Result ReadResult(const std::filesystem::path& path) {
  Json storage;
  const JsonReader file = JsonReader::Read(path, "hkt reproduce", storage);
  const int64_t format = file["format"].Count();
  Check(format >= 1 && format <= kResultFormat, path.string(), ": format ", format,
        ", this hkt reads up to ", kResultFormat, "; update hkt");
  io::CheckWrittenBy(file["hkt_version"].Text(), path.string());
  Result result;
  result.path = path;
  result.name = file["name"].Text();
  result.row = file["row"].Text();
  result.group = file["group"].Text();
  result.task = file["task"].Text();
  result.seed = file["seed"].Count();
  const std::string id = Concat(result.name, "-s", result.seed), tier = file["tier"].Text();
  Check(path.stem() == id && path.parent_path().filename() == tier, path.string(),
        ": it says that it is ", id, " of tier ", tier, ", whose place is ", tier, "/", id,
        ".json; a result counts once: remove the copy, or move the file back");
  if (file.Has("commit")) result.commit = file["commit"].Text();
  result.processor = file["processor"].Text();
  if (!file["config"].json().is_object()) file["config"].FailHere("an object");
  result.config = file["config"].json();
  if (file.Has("parameters")) result.parameters = file["parameters"].Count();
  const JsonReader sizes = file["sizes"];
  result.train_examples = sizes["train"].Count();
  result.validation_examples = sizes["validation"].Count();
  result.test_examples = sizes["test"].Count();
  result.best_accuracy = file["best"]["accuracy"].Share();
  result.last_accuracy = file["last"]["accuracy"].Share();
  const JsonReader test = file["test"];
  result.test_accuracy = test["accuracy"].Share();
  result.test_loss = test["loss"].Number();
  const int64_t examples = test["examples"].Count();
  result.correct =
      DecodeBits(test["correct"].Text(), examples, Concat(path.string(), ": test.correct"));
  int64_t right = 0;
  for (const uint8_t byte : result.correct) right += std::popcount(static_cast<unsigned>(byte));
  Check(examples > 0 && std::abs(static_cast<double>(right) / static_cast<double>(examples) -
                                 result.test_accuracy) < 0.5 / static_cast<double>(examples),
        path.string(), ": test.correct has ", right, " of ", examples,
        " examples, which is not test.accuracy ", result.test_accuracy);
  if (examples != result.test_examples) test["examples"].FailHere("sizes.test");
  const JsonReader curve = file["curve"];
  result.training_curve = Points(curve["train"], 2, 1);  // a loss that is not finite is null
  result.validation_curve = Points(curve["validation"], 5, 2);
  result.by_depth = Tallies(file, "by_depth", "depth");
  result.by_operator = Tallies(file, "by_operator", "operator");
  const JsonReader time = file["time"];
  result.wall_seconds = time["wall_seconds"].Number();
  if (time.Has("cpu_seconds")) result.cpu_seconds = time["cpu_seconds"].Number();
  result.peak_memory_bytes = time["peak_memory_bytes"].Number();
  if (file.Has("analysis")) result.analysis = Analysis(file["analysis"]);
  return result;
}

std::vector<Result> ReadResults(const std::filesystem::path& folder) {
  std::vector<Result> results;
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error == std::errc::no_such_file_or_directory) return results;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::filesystem::path& path = entries->path();
    if (path.extension() == ".json" && !path.filename().string().starts_with('.'))
      results.push_back(ReadResult(path));
  }
  if (error) throw Error(io::SystemMessage("read the folder", folder, error.value()));
  std::sort(results.begin(), results.end(), [](const Result& a, const Result& b) {
    return std::tie(a.name, a.seed) < std::tie(b.name, b.seed);
  });
  return results;
}

}  // namespace hkt::report
