#include "hkt/data/imdb.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <optional>

#include "hkt/base/error.h"
#include "hkt/data/archive.h"
#include "hkt/data/bytes.h"
#include "hkt/data/stratify.h"
#include "hkt/io/file.h"

namespace hkt::data::imdb {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 2> kLabels = {"neg", "pos"};
constexpr std::string_view kExpected =
    "expected aclImdb/{train,test}/{neg,pos}/ID_RATING.txt, the Large Movie Review Dataset "
    "(aclImdb_v1.tar.gz)";

struct Review {
  std::string path;  // "train/neg/0_2.txt"
  int32_t label;
  std::vector<uint16_t> ids;
  bool truncated;
};

bool Digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// ID_RATING.txt
bool IsReviewName(std::string_view name) {
  const size_t underscore = name.find('_');
  return underscore != name.npos && name.size() > 4 && name.ends_with(".txt") &&
         Digits(name.substr(0, underscore)) &&
         Digits(name.substr(underscore + 1, name.size() - 4 - (underscore + 1)));
}

// Gathers the reviews of the parts ("train", "test") that are wanted.
class Collector {
 public:
  Collector(std::string source, int64_t seq_len, std::set<std::string> parts)
      : source_(std::move(source)), seq_len_(seq_len), parts_(std::move(parts)) {}

  const std::set<std::string>& parts() const { return parts_; }

  // Of a file `path` below aclImdb/: whether it is a review of a wanted part.
  bool Wants(const std::string& path) const {
    const std::optional<int32_t> label = LabelOf(path);
    if (!label) return false;
    const std::string name = path.substr(path.rfind('/') + 1);
    if (name[0] == '.') return false;  // what file managers leave behind
    Check(IsReviewName(name), source_, ": '", path, "' is not called ID_RATING.txt (as 127_9.txt)");
    return true;
  }

  void Take(const std::string& path, const std::string& bytes) {
    Review review{path, *LabelOf(path), {}, false};
    review.ids = EncodeBytes(bytes, seq_len_, &review.truncated);
    reviews_.push_back(std::move(review));
  }

  // One byte more than is kept, to know whether there was more.
  size_t max_bytes() const { return static_cast<size_t>(seq_len_) + 1; }

  // The reviews of one part in order of path; both labels are there.
  std::vector<Review> Sorted(const std::string& part) const {
    std::vector<Review> sorted;
    std::array<int64_t, 2> counts{};
    for (const Review& review : reviews_) {
      if (!review.path.starts_with(part + "/")) continue;
      sorted.push_back(review);
      ++counts[review.label];
    }
    for (size_t label = 0; label < kLabels.size(); ++label) {
      Check(counts[label] > 0, source_, ": no review under ", part, "/", kLabels[label], "; ",
            kExpected);
    }
    std::sort(sorted.begin(), sorted.end(),
              [](const Review& a, const Review& b) { return a.path < b.path; });
    const auto twice =
        std::adjacent_find(sorted.begin(), sorted.end(),
                           [](const Review& a, const Review& b) { return a.path == b.path; });
    Check(twice == sorted.end(), source_, ": ", twice == sorted.end() ? "" : twice->path,
          " is there twice");
    return sorted;
  }

  const std::string& source() const { return source_; }

 private:
  // Of PART/LABEL/NAME with a wanted part.
  std::optional<int32_t> LabelOf(const std::string& path) const {
    const size_t first = path.find('/');
    if (first == path.npos || !parts_.count(path.substr(0, first))) return std::nullopt;
    const size_t second = path.find('/', first + 1);
    if (second == path.npos || path.find('/', second + 1) != path.npos) return std::nullopt;
    const auto label =
        std::find(kLabels.begin(), kLabels.end(), path.substr(first + 1, second - first - 1));
    if (label == kLabels.end()) return std::nullopt;
    return static_cast<int32_t>(label - kLabels.begin());
  }

  std::string source_;
  int64_t seq_len_;
  std::set<std::string> parts_;
  std::vector<Review> reviews_;
};

void ReadFromArchive(const std::string& archive, Collector& collector) {
  constexpr std::string_view kRoot = "aclImdb/";
  ReadArchive(
      archive, collector.max_bytes(),
      [&](const std::string& path) {
        return path.starts_with(kRoot) && collector.Wants(path.substr(kRoot.size()));
      },
      [&](const std::string& path, const std::string& bytes) {
        collector.Take(path.substr(kRoot.size()), bytes);
      });
}

// The folder that holds train/ and test/, whether the user named it or the one above it.
fs::path FindRoot(const std::string& folder) {
  for (const fs::path& root : {fs::path(folder), fs::path(folder) / "aclImdb"}) {
    if (fs::is_directory(root / "train") || fs::is_directory(root / "test")) return root;
  }
  for (const char* name : {"aclImdb_v1.tar.gz", "aclImdb_v1.tar.xz"}) {
    const fs::path archive = fs::path(folder) / name;
    if (fs::exists(archive))
      Fail(folder, ": a folder that holds the archive, not the reviews; use --data ",
           archive.string());
  }
  Fail(folder, ": a folder without train/ and test/; ", kExpected);
}

void ReadFromFolder(const std::string& folder, Collector& collector) {
  const fs::path root = FindRoot(folder);
  for (const std::string& part : collector.parts()) {
    for (std::string_view label : kLabels) {
      const fs::path directory = root / part / label;
      if (!fs::is_directory(directory)) continue;  // Sorted() complains
      for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
        const std::string path = Concat(part, "/", label, "/", entry.path().filename().string());
        if (!collector.Wants(path)) continue;
        Check(!entry.is_symlink(), entry.path().string(), ": is a link; put the file itself there");
        collector.Take(path, io::ReadFile(entry.path(), collector.max_bytes()));
      }
    }
  }
}

void Add(Dataset& dataset, const Review& review) {
  dataset.Add(review.ids, review.label);
  dataset.truncated += review.truncated;
}

// For every review of train whether it goes to validation: a tenth of each label, at least one.
std::vector<uint8_t> DrawValidation(const std::vector<Review>& train, uint64_t data_seed,
                                    const std::string& source) {
  std::vector<int32_t> labels;
  for (const Review& review : train) labels.push_back(review.label);
  for (int32_t label = 0; label < static_cast<int32_t>(kLabels.size()); ++label) {
    Check(std::count(labels.begin(), labels.end(), label) >= 2, source, ": one review under train/",
          kLabels[label], ", at least 2 are needed: one goes to validation");
  }
  return DealTenths(labels, static_cast<int64_t>(kLabels.size()), data_seed, kValidationStream);
}

}  // namespace

std::vector<fs::path> Folders(const std::string& folder, Split split) {
  const fs::path part = FindRoot(folder) / (split == Split::kTest ? "test" : "train");
  std::vector<fs::path> folders;
  for (std::string_view label : kLabels) {
    if (fs::is_directory(part / label)) folders.push_back(part / label);
  }
  return folders;
}

std::map<Split, Dataset> Read(const std::string& path, int64_t seq_len, uint64_t data_seed,
                              const std::set<Split>& splits) {
  const bool test = splits.count(Split::kTest), train = splits.size() > (test ? 1 : 0);
  std::set<std::string> parts;
  if (train) parts.insert("train");
  if (test) parts.insert("test");
  Collector collector(path, seq_len, parts);
  if (fs::is_directory(path)) {
    ReadFromFolder(path, collector);
  } else {
    ReadFromArchive(path, collector);
  }

  std::map<Split, Dataset> result;
  for (Split split : splits) result[split];
  if (test) {
    for (const Review& review : collector.Sorted("test")) Add(result[Split::kTest], review);
  }
  if (train) {
    const std::vector<Review> reviews = collector.Sorted("train");
    const std::vector<uint8_t> validation = DrawValidation(reviews, data_seed, path);
    for (size_t i = 0; i < reviews.size(); ++i) {
      const auto wanted = result.find(validation[i] ? Split::kValidation : Split::kTrain);
      if (wanted != result.end()) Add(wanted->second, reviews[i]);
    }
  }
  return result;
}

}  // namespace hkt::data::imdb
