#include "hkt/report/run_test_util.h"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <map>

#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/io/json_lines.h"
#include "hkt/io/run_folder.h"
#include "hkt/io/safetensors.h"

namespace hkt::report {
namespace {

Json LevelRows(const char* key, double first, double second) {
  Json rows = Json::array();
  for (const double head : {0.0, 1.0}) {
    for (int level = 0; level < 2; ++level) {
      rows.push_back({{"layer", 0},
                      {"head", static_cast<int>(head)},
                      {"level", level},
                      {key, (level == 0 ? first : second) + 0.1 * head}});
    }
  }
  return rows;
}

Json Analysis(double alpha) {
  Json mixture = LevelRows("lambda", 0.6, 0.4);
  for (Json& row : mixture)
    row.update({{"beta", nullptr}, {"weight", 0.5}, {"variance_share", 0.5}});
  Json kernel = LevelRows("negative_share", 0.5, 0.5);
  for (Json& row : kernel) row.update({{"negative_energy", 0.25}, {"locality_preference", 1.0}});
  Json direction = LevelRows("alpha", alpha, alpha + 0.1);
  for (Json& row : direction) row.update({{"expected", 0.49}, {"z", nullptr}});
  Json scores = LevelRows("kurtosis", 3, 5);
  scores.push_back({{"layer", 0}, {"head", 0}, {"level", nullptr}, {"kurtosis", 1000.0}});
  return {{"mixture", {{"levels", mixture}}},
          {"kernel", {{"levels", kernel}}},
          {"direction", {{"levels", direction}}},
          {"kurtosis", {{"scores", scores}}}};
}

}  // namespace

TestFolder::TestFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "hkt-report-XXXXXX").string();
  Check(::mkdtemp(name.data()) != nullptr, "no temporary folder");
  path_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TestFolder::Write(const std::string& file, std::string_view text) const {
  io::CreateFolders((path_ / file).parent_path());
  io::WriteFileAtomically(path_ / file, text);
}

void WriteFinishedRun(const ExperimentRun& run, const std::filesystem::path& root) {
  io::CreateFolders(root);
  const io::RunFolder folder(root);
  folder.WriteConfig(run.config);
  const std::array<float, 1> weight = {1};
  io::WriteSafetensors(
      folder.model(),
      {{"w", {.dtype = io::Dtype::kF32, .shape = {1}, .data = std::as_bytes(std::span(weight))}}},
      {});
  const std::string checksum = io::SafetensorsFile(folder.model()).checksum();
  const Json lines = {{{"kind", "train"}, {"step", 1}, {"loss", 2.123456789}, {"seconds", 0.5}},
                      {{"kind", "eval"},
                       {"step", 2},
                       {"accuracy", 0.75},
                       {"loss", 0.5},
                       {"best", true},
                       {"seconds", 1.0},
                       {"cpu_seconds", 0.9}},
                      {{"kind", "train"}, {"step", 3}, {"loss", nullptr}, {"seconds", 1.5}},
                      {{"kind", "eval"},
                       {"step", 4},
                       {"accuracy", 0.5},
                       {"loss", 0.7},
                       {"best", false},
                       {"seconds", 2.0},
                       {"cpu_seconds", 1.9}},
                      {{"kind", "end"},
                       {"step", 4},
                       {"commit", "abc"},
                       {"parameters", 7},
                       {"train_samples", 100},
                       {"validation_samples", 10},
                       {"peak_memory_bytes", 4096},
                       {"seconds", 2.0},
                       {"cpu_seconds", 1.9}}};
  for (const Json& line : lines) io::AppendJsonLine(folder.metrics(), line);
  Json classes = Json::array();
  for (int c = 0; c < 10; ++c)
    classes.push_back({{"name", std::to_string(c)}, {"recall", c < 3 ? Json(1.0) : Json(nullptr)}});
  const Json evaluation = {{"split", "test"},
                           {"weights", {{"checksum", checksum}}},
                           {"loss", 0.25},
                           {"truncated", 0},
                           {"samples", 4},
                           {"accuracy", 0.75},
                           {"majority", {{"share", 0.25}}},
                           {"classes", classes},
                           {"by_depth",
                            {{"2", {{"samples", 3}, {"accuracy", 2.0 / 3}}},
                             {"11", {{"samples", 1}, {"accuracy", 1.0}}}}},
                           {"by_root_operator", {{"MAX", {{"samples", 4}, {"accuracy", 0.75}}}}},
                           {"labels", {0, 1, 2, 3}},
                           {"predicted", {0, 1, 2, 9}}};
  io::WriteFileAtomically(folder.evaluation(), io::PrettyJson(evaluation));
  if (!WantsAnalysis(run.config)) return;
  Json analysis = Analysis(0.3);
  analysis["weights"] = {{"checksum", checksum}};
  analysis["initial"] = Analysis(0.2);
  const Json removed = {{"removed", {1}},
                        {"accuracy", 0.5},
                        {"change", -0.25},
                        {"change_standard_error", 0.1},
                        {"loss", 2.0}};
  analysis["levels_removed"] = {{"rows", Json::array({removed})}};
  io::WriteFileAtomically(folder.analysis(), io::PrettyJson(analysis));
}

}  // namespace hkt::report
