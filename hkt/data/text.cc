#include "hkt/data/text.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/data/bytes.h"
#include "hkt/data/stratify.h"
#include "hkt/io/file.h"

namespace hkt::data::text {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kForm =
    "lines label<TAB>text, or CSV with a header that has the columns label and text in a file "
    "named .csv";
constexpr std::array<std::string_view, 3> kEndings = {".tsv", ".csv", ".txt"};

// Everything that one file holds; labels are numbers in the order of their first occurrence.
struct Parsed {
  std::string name;
  Dataset dataset;
  std::vector<bool> cut;
  std::vector<std::string> labels;
  std::vector<int64_t> first_lines;  // of every label the line where it occurs first
};

// Of a file name: DATA.CSV is data.csv from another system.
std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// Classes go into JSON documents. Texts need not be UTF-8.
bool IsUtf8(std::string_view text) {
  try {
    return !nlohmann::json(text).dump().empty();
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

Parsed ParseFile(const std::string& path, int64_t seq_len) {
  const std::string content = io::ReadFile(path);
  Check(!content.empty(), path, ": is empty; expected ", kForm);
  Check(!content.starts_with("\xff\xfe") && !content.starts_with("\xfe\xff"), path,
        ": is UTF-16, as its first two bytes say; save it as UTF-8");
  Parsed parsed{path, {}, {}, {}, {}};
  std::unordered_map<std::string, int32_t> numbers;
  const Take take = [&](std::string_view label, std::string_view text, int64_t line) {
    const auto [found, is_new] =
        numbers.emplace(std::string(label), static_cast<int32_t>(numbers.size()));
    if (is_new) {
      Check(IsUtf8(label), path, ":", line, ": the label is not UTF-8");
      Check(static_cast<int64_t>(numbers.size()) <= kMaxClasses, path, ":", line, ": '",
            Printable(label), "' is the ", kMaxClasses + 1, "th different label, at most ",
            kMaxClasses, " are possible; the label comes first: ", kForm);
      parsed.labels.push_back(found->first);
      parsed.first_lines.push_back(line);
    }
    bool truncated = false;
    parsed.dataset.Add(EncodeBytes(text, seq_len, &truncated), found->second);
    parsed.cut.push_back(truncated);
  };
  if (Lower(fs::path(path).extension().string()) == ".csv") {
    ParseCsv(content, path, take);
  } else {
    ParseLines(content, path, take);
  }
  Check(parsed.dataset.size() > 0, path, ": has no example; expected ", kForm);
  return parsed;
}

// Labels become the numbers of `classes`.
void Number(Parsed& parsed, const std::vector<std::string>& classes, const std::string& whose) {
  std::vector<int32_t> to;
  for (size_t i = 0; i < parsed.labels.size(); ++i) {
    const auto found = std::find(classes.begin(), classes.end(), parsed.labels[i]);
    if (found == classes.end()) {
      std::string known;
      for (size_t c = 0; c < std::min<size_t>(classes.size(), 10); ++c)
        known += (c ? ", " : "") + classes[c];
      Fail(parsed.name, ":", parsed.first_lines[i], ": the label '", Printable(parsed.labels[i]),
           "' is none of ", whose, " (", Printable(known), classes.size() > 10 ? ", ...)" : ")");
    }
    to.push_back(static_cast<int32_t>(found - classes.begin()));
  }
  for (int32_t& label : parsed.dataset.labels) label = to[static_cast<size_t>(label)];
}

std::vector<std::string> FindClasses(const Parsed& train) {
  std::vector<std::string> classes = train.labels;
  std::sort(classes.begin(), classes.end());
  Check(classes.size() >= 2, train.name, ": every example has the label '",
        Printable(classes.front()), "'; at least two classes are needed");
  return classes;
}

void Append(const Parsed& from, int64_t i, Dataset& to) {
  to.Add(from.dataset.sequence(i), from.dataset.labels[i]);
  to.truncated += from.cut[static_cast<size_t>(i)];
}

Dataset Whole(Parsed&& parsed) {
  parsed.dataset.truncated = std::count(parsed.cut.begin(), parsed.cut.end(), true);
  return std::move(parsed.dataset);
}

// Deals train out among the splits that have no file of their own.
void Draw(const Parsed& train, const std::vector<std::string>& classes, uint64_t data_seed,
          const std::vector<Split>& drawn, std::map<Split, Dataset>& result) {
  std::vector<int64_t> counts(classes.size());
  for (int32_t label : train.dataset.labels) ++counts[static_cast<size_t>(label)];
  for (size_t c = 0; c < classes.size(); ++c) {
    Check(counts[c] == 0 || counts[c] > static_cast<int64_t>(drawn.size()), train.name, ": class '",
          Printable(classes[c]), "' has ", Counted(counts[c], "example"), ", at least ",
          drawn.size() + 1,
          " are needed: validation and test need one each, unless they have files of their own");
  }
  const std::vector<uint8_t> parts =
      DealTenths(train.dataset.labels, static_cast<int64_t>(classes.size()), data_seed,
                 kValidationStream, static_cast<int>(drawn.size()));
  for (int64_t i = 0; i < train.dataset.size(); ++i) {
    const uint8_t part = parts[static_cast<size_t>(i)];
    const auto wanted = result.find(part == 0 ? Split::kTrain : drawn[part - 1]);
    if (wanted != result.end()) Append(train, i, wanted->second);
  }
}

// The file of a split in a folder, if there is one.
std::optional<std::string> FileOf(const std::string& folder, Split split) {
  std::vector<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const std::string name = Lower(entry.path().filename().string());
    if (std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
          return name == Concat(SplitName(split), ending);
        }))
      found.push_back(entry.path().string());
  }
  if (found.empty()) return std::nullopt;
  std::sort(found.begin(), found.end());
  Check(found.size() == 1, folder, ": has both ", fs::path(found[0]).filename().string(), " and ",
        fs::path(found.back()).filename().string(), "; remove one");
  return found[0];
}

// Of every split the file that is its own; a single file is train.
std::map<Split, std::string> OwnFiles(const std::string& path) {
  if (!fs::is_directory(path)) {
    Check(fs::exists(path), path, ": no such file; --data names a file of ", kForm,
          ", or a folder that holds train.tsv or train.csv");
    return {{Split::kTrain, path}};
  }
  std::map<Split, std::string> files;
  for (Split split : kAllSplits) {
    if (const auto file = FileOf(path, split)) files[split] = *file;
  }
  Check(files.contains(Split::kTrain), path,
        ": a folder without train.tsv, train.csv or train.txt; validation and test may lie beside "
        "it");
  return files;
}

}  // namespace

std::string OwnSplits(const std::string& path) {
  std::string names;
  for (const auto& [split, file] : OwnFiles(path))
    names += Concat(names.empty() ? "" : ",", SplitName(split));
  return names;
}

std::vector<fs::path> Files(const std::string& path, Split split) {
  const std::map<Split, std::string> own = OwnFiles(path);
  std::vector<fs::path> files = {own.at(Split::kTrain)};
  if (split != Split::kTrain && own.contains(split)) files.push_back(own.at(split));
  return files;
}

Result Read(const std::string& path, int64_t seq_len, uint64_t data_seed,
            const std::set<Split>& splits, const std::vector<std::string>& known) {
  const std::map<Split, std::string> own = OwnFiles(path);
  Result result{known, {}};
  for (Split split : splits) result.splits[split];
  std::vector<Split> drawn;
  bool deals = false;
  for (Split split : {Split::kValidation, Split::kTest}) {
    if (own.contains(split)) continue;
    drawn.push_back(split);
    deals |= splits.contains(split);
  }
  if (known.empty() || deals || splits.contains(Split::kTrain)) {
    Parsed train = ParseFile(own.at(Split::kTrain), seq_len);
    if (known.empty()) result.classes = FindClasses(train);
    Number(train, result.classes, "the model's classes");
    Draw(train, result.classes, data_seed, drawn, result.splits);
  }
  for (Split split : {Split::kValidation, Split::kTest}) {
    if (!splits.contains(split) || !own.contains(split)) continue;
    Parsed parsed = ParseFile(own.at(split), seq_len);
    Number(parsed, result.classes, known.empty() ? "train's classes" : "the model's classes");
    result.splits[split] = Whole(std::move(parsed));
  }
  return result;
}

}  // namespace hkt::data::text
