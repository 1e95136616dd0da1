#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hkt/report/json_reader.h"

namespace hkt::report {

constexpr int64_t kResultFormat = 1;  // of the files that this hkt writes; it reads all up to it

// One run's result, <experiments>/results/<tier>/<name>-s<seed>.json as 'hkt reproduce' writes it
// (docs/experiments.md). Accuracies are shares.
struct Result {
  std::filesystem::path path;
  std::string name, row, group, task, commit, processor;
  int64_t seed = 0;
  nlohmann::ordered_json config;  // the options, as they were resolved
  int64_t train_examples = 0, validation_examples = 0, test_examples = 0;
  std::optional<int64_t> parameters;  // these two: of a run that an older hkt trained there is none
  std::optional<double> cpu_seconds;
  double test_accuracy = 0, test_loss = 0, best_accuracy = 0, last_accuracy = 0;
  std::vector<uint8_t> correct;             // a bit an example of the test split
  nlohmann::ordered_json training_curve;    // [[step, loss], …]
  nlohmann::ordered_json validation_curve;  // [[step, accuracy, loss, wall s, processor s], …]
  nlohmann::ordered_json by_depth, by_operator;  // ListOps; else null
  nlohmann::ordered_json analysis;               // null where there is none
  double wall_seconds = 0, peak_memory_bytes = 0;
};

// Throws Error that names the file and the key for anything else, a newer format included, and for
// a file that lies under another name or tier than it says of itself, as a copy does.
Result ReadResult(const std::filesystem::path& path);

// All of a tier, by name and seed. No folder: none. Error for a folder that cannot be read.
std::vector<Result> ReadResults(const std::filesystem::path& folder);

}  // namespace hkt::report
