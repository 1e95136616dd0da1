#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hkt/data/dataset.h"
#include "hkt/data/task.h"

// Any labelled text. A file is lines `label<TAB>text`, or, where its name ends in .csv (or .CSV),
// CSV (RFC 4180) with a header that names the columns `label` and `text`. A text is its bytes as
// they are, id = byte + 1. The data are one file, or a folder with train.tsv (or .csv, .txt) and,
// if there are, validation.* and test.*; what has no file of its own is drawn from train, a tenth
// of every class. The classes are the labels of train in the order of their bytes.

namespace hkt::data::text {

inline constexpr int64_t kSeqLen = 1024;  // by default

// Calls `take` with every example and the number of the line in which it begins. A byte order mark
// is skipped, and a line may end with CR LF. Error, naming `name` and the line: a line without a
// tab, an empty label.
using Take = std::function<void(std::string_view label, std::string_view text, int64_t line)>;
void ParseLines(std::string_view content, const std::string& name, const Take& take);

// The same for CSV: fields in double quotes may hold commas, line ends and doubled quotes; columns
// of other names are passed over. Error: no header with both columns, a record of another number of
// fields, a quote that is not closed, that stands inside a field or before more text.
void ParseCsv(std::string_view content, const std::string& name, const Take& take);

struct Result {
  std::vector<std::string> classes;
  std::map<Split, Dataset> splits;
};

// `classes`, when not empty, are those of a trained model; else they are found. Error that names
// the file: it is empty or not there, one class only or more than kMaxClasses, a class with too few
// examples to draw from, a label of validation or test that train (or the model) does not have.
Result Read(const std::string& path, int64_t seq_len, uint64_t data_seed,
            const std::set<Split>& splits, const std::vector<std::string>& classes);

// The files that a split comes from, and the splits that have a file of their own
// ("train,validation"), for the cache.
std::vector<std::filesystem::path> Files(const std::string& path, Split split);
std::string OwnSplits(const std::string& path);

}  // namespace hkt::data::text
