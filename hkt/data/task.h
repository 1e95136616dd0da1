#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hkt/base/config.h"
#include "hkt/data/dataset.h"

// What the program learns from: one entry for all tasks. Everything here is a pure function of the
// DataConfig and of the files it names.

namespace hkt::data {

enum class Split { kTrain, kValidation, kTest };

inline constexpr std::array kAllSplits = {Split::kTrain, Split::kValidation, Split::kTest};

std::string_view SplitName(Split split);  // "train", "validation", "test"
Split ParseSplit(std::string_view name);  // UsageError for another name

struct TaskInfo {
  std::string name;
  int64_t vocabulary = 0;  // ids 0 ... vocabulary-1; 0 is padding
  int64_t seq_len = 0;     // longest sequence in tokens
  std::vector<std::string> classes;
};

// Needs no data. UsageError for an unknown task or preset.
TaskInfo Describe(const DataConfig& config);

// Reads or generates these splits, and keeps only them: asking for train and validation never looks
// at the test set. Sequences longer than seq_len are cut and counted in Dataset::truncated. Errors
// name the file and what is wrong.
std::map<Split, Dataset> Load(const DataConfig& config, std::initializer_list<Split> splits);

// What Load does to one text. ListOps: an Error where the text is no expression; IMDB: every text
// will do. *truncated (may be null) says whether it was cut to seq_len.
std::vector<uint16_t> Encode(const DataConfig& config, std::string_view text, bool* truncated);

}  // namespace hkt::data
