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

inline constexpr int64_t kMaxClasses = 1000;

struct TaskInfo {
  std::string name;
  int64_t vocabulary = 0;  // ids 0 ... vocabulary-1; 0 is padding
  int64_t channels = 1;    // values a step; of several, each is 0 ... vocabulary-1 and no id
  int64_t seq_len = 0;     // longest sequence in tokens
  std::vector<std::string> classes;
};

// Needs no data; of task text, whose classes are found in the data, without classes. UsageError for
// an unknown task or preset, or an option that the task does not have.
TaskInfo Describe(const DataConfig& config);

// The same, and the classes of task text, for which its data are read.
TaskInfo DescribeWithClasses(const DataConfig& config);

struct LoadedTask {
  TaskInfo info;
  std::map<Split, Dataset> splits;
};

// Reads or generates these splits, and keeps only them: asking for train and validation never looks
// at the test set. Sequences longer than seq_len are cut and counted in Dataset::truncated. What
// was read before comes from the cache (hkt/data/cache.h). `classes` are those of the model that
// the data are for, where there is one: task text then takes no others. Errors name the file and
// what is wrong.
LoadedTask LoadTask(const DataConfig& config, const std::set<Split>& splits,
                    const std::vector<std::string>& classes = {});

// Only the splits.
std::map<Split, Dataset> Load(const DataConfig& config, std::initializer_list<Split> splits);

// What Load does to one text. ListOps: an Error where the text is no expression; IMDB and text:
// every text will do; CIFAR-10: an Error, see EncodeImages. *truncated (may be null) says whether
// it was cut to seq_len.
std::vector<uint16_t> Encode(const DataConfig& config, std::string_view text, bool* truncated);

// Whether the task's inputs are images, which no text can give.
bool TakesImages(const DataConfig& config);

// What Load does to images that a file holds one behind the other, as CIFAR-10's binary version: of
// 3072 bytes, or 3073 with the label first. Error, naming `name`, where it holds no whole images.
Dataset EncodeImages(const DataConfig& config, std::string_view bytes, const std::string& name);

}  // namespace hkt::data
