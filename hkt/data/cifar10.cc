#include "hkt/data/cifar10.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/base/text.h"
#include "hkt/data/archive.h"
#include "hkt/data/stratify.h"
#include "hkt/io/file.h"

namespace hkt::data::cifar10 {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRoot = "cifar-10-batches-bin";
constexpr std::string_view kMeta = "batches.meta.txt";
constexpr std::string_view kExpected =
    "expected cifar-10-batches-bin/data_batch_1.bin ... data_batch_5.bin and test_batch.bin, the "
    "binary version of CIFAR-10 (cifar-10-binary.tar.gz)";
constexpr std::array<std::string_view, 6> kFiles = {"data_batch_1.bin", "data_batch_2.bin",
                                                    "data_batch_3.bin", "data_batch_4.bin",
                                                    "data_batch_5.bin", "test_batch.bin"};
constexpr size_t kTestFile = 5;

// Far more than the real files: what a damaged header claims must not fill the memory.
constexpr size_t kMaxFileBytes = 1 << 28;

constexpr int64_t kLargestShift = 4;

// `pixels` are the three planes.
void AddImage(const char* pixels, int32_t label, bool rgb, Dataset& dataset) {
  const auto* red = reinterpret_cast<const uint8_t*>(pixels);
  const uint8_t *green = red + kSeqLen, *blue = green + kSeqLen;
  std::array<uint16_t, kImageBytes> values;
  for (int64_t i = 0; i < kSeqLen; ++i) {
    if (rgb) {
      values[3 * i] = red[i];
      values[3 * i + 1] = green[i];
      values[3 * i + 2] = blue[i];
    } else {
      values[i] = static_cast<uint16_t>(Grey(red[i], green[i], blue[i]) + 1);
    }
  }
  dataset.Add(std::span(values).first(rgb ? kImageBytes : kSeqLen), label);
}

Dataset Empty(bool rgb) {
  Dataset dataset;
  dataset.channels = rgb ? kChannels : 1;
  return dataset;
}

bool LabelsFit(std::string_view bytes) {
  for (size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    if (static_cast<uint8_t>(bytes[at]) >= kClasses.size()) return false;
  }
  return true;
}

// The files of the wanted parts, whatever their order in the source.
class Collector {
 public:
  Collector(std::string source, bool rgb, bool train, bool test)
      : source_(std::move(source)), rgb_(rgb), train_(train), test_(test) {}

  bool Wants(std::string_view name) const {
    if (name == kMeta) return true;
    const auto file = std::find(kFiles.begin(), kFiles.end(), name);
    return file != kFiles.end() && Wanted(static_cast<size_t>(file - kFiles.begin()));
  }

  void Take(const std::string& name, const std::string& bytes) {
    if (name == kMeta) return CheckClasses(bytes);
    const auto file =
        static_cast<size_t>(std::find(kFiles.begin(), kFiles.end(), name) - kFiles.begin());
    Check(!parts_[file], source_, ": ", name, " is there twice");
    parts_[file] = ParseRecords(bytes, Concat(source_, ", ", name), rgb_);
  }

  // Once everything was taken: nothing is missing, and every file has as many records as the
  // others, which a file that was cut between two records would not have.
  void CheckWhole() const {
    std::optional<size_t> first;
    for (size_t file = 0; file < kFiles.size(); ++file) {
      if (!Wanted(file)) continue;
      Check(parts_[file].has_value(), source_, ": no ", kFiles[file], "; ", kExpected);
      if (!first) first = file;
      Check(parts_[file]->size() == parts_[*first]->size(), source_, ": ", kFiles[file], " holds ",
            Counted(parts_[file]->size(), "image"), " and ", kFiles[*first], " ",
            parts_[*first]->size(), "; one of them is cut short, get it again");
    }
  }

  Dataset& part(size_t file) { return *parts_[file]; }

 private:
  bool Wanted(size_t file) const { return file == kTestFile ? test_ : train_; }

  // The order of the names is the meaning of the labels.
  void CheckClasses(std::string_view text) const {
    size_t begin = 0;
    for (std::string_view name : kClasses) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line = text.substr(std::min(begin, text.size()), end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      Check(line == name, source_, ": ", kMeta, " names the class '", Printable(line), "' where '",
            name, "' is expected; ", kExpected);
      begin = std::min(end + 1, text.size());
    }
  }

  std::string source_;
  bool rgb_, train_, test_;
  std::array<std::optional<Dataset>, kFiles.size()> parts_;
};

void ReadFromArchive(const std::string& archive, Collector& collector) {
  const std::string root = Concat(kRoot, "/");
  ReadArchive(
      archive, kMaxFileBytes,
      [&](const std::string& path) {
        return path.starts_with(root) &&
               collector.Wants(std::string_view(path).substr(root.size()));
      },
      [&](const std::string& path, const std::string& bytes) {
        collector.Take(path.substr(root.size()), bytes);
      });
}

// The folder that holds the batches, whether the user named it or the one above it.
fs::path FindRoot(const std::string& folder) {
  for (const fs::path& root : {fs::path(folder), fs::path(folder) / kRoot}) {
    for (std::string_view file : kFiles) {
      if (fs::exists(root / file)) return root;
    }
  }
  for (const char* name : {"cifar-10-binary.tar.gz", "cifar-10-binary.tar.xz"}) {
    const fs::path archive = fs::path(folder) / name;
    if (fs::exists(archive))
      Fail(folder, ": a folder that holds the archive, not the batches; use --data ",
           archive.string());
  }
  Fail(folder, ": a folder without data_batch_1.bin; ", kExpected);
}

void ReadFromFolder(const std::string& folder, Collector& collector) {
  const fs::path root = FindRoot(folder);
  // By size, so that a test file that was cut is found where it is the only one that is read.
  std::optional<std::uintmax_t> size;
  for (std::string_view name : kFiles) {
    const fs::path file = root / name;
    if (!fs::exists(fs::symlink_status(file))) continue;  // CheckWhole() complains of those needed
    Check(!fs::is_symlink(file), file.string(), ": is a link; put the file itself there");
    io::CheckPlainFile(file);
    if (!size) size = fs::file_size(file);
    Check(fs::file_size(file) == *size, file.string(), ": has ", fs::file_size(file),
          " bytes and the batches before it ", *size, "; one of them is cut short, get it again");
  }
  for (std::string_view name :
       {kMeta, kFiles[0], kFiles[1], kFiles[2], kFiles[3], kFiles[4], kFiles[5]}) {
    if (collector.Wants(name) && fs::exists(root / name))
      collector.Take(std::string(name), io::ReadFile(root / name));
  }
}

}  // namespace

Dataset ParseRecords(std::string_view bytes, const std::string& name, bool rgb) {
  Check(!bytes.empty() && bytes.size() % kRecordBytes == 0, name, ": ", bytes.size(),
        " bytes are no whole number of records of ", kRecordBytes,
        " bytes (a label and an image); damaged or cut short, get it again");
  Dataset dataset = Empty(rgb);
  dataset.tokens.reserve(bytes.size() / kRecordBytes * (rgb ? kImageBytes : kSeqLen));
  for (size_t at = 0; at < bytes.size(); at += kRecordBytes) {
    const auto label = static_cast<uint8_t>(bytes[at]);
    Check(label < kClasses.size(), name, ": the label of record ", at / kRecordBytes + 1, " is ",
          static_cast<int>(label), ", must be 0 ... 9; damaged, or not the binary version");
    AddImage(bytes.data() + at + 1, label, rgb, dataset);
  }
  return dataset;
}

Dataset ParseImages(std::string_view bytes, const std::string& name, bool rgb) {
  const bool with = bytes.size() % kRecordBytes == 0, without = bytes.size() % kImageBytes == 0;
  Check(!bytes.empty() && (with || without), name, ": ", bytes.size(),
        " bytes are no whole number of images: ", kImageBytes,
        " bytes each (the red, the green and the blue plane), or ", kRecordBytes,
        " with a label byte before them");
  if (with && (!without || LabelsFit(bytes))) return ParseRecords(bytes, name, rgb);
  Dataset dataset = Empty(rgb);
  for (size_t at = 0; at < bytes.size(); at += kImageBytes)
    AddImage(bytes.data() + at, /*label=*/0, rgb, dataset);
  return dataset;
}

std::vector<fs::path> Files(const std::string& folder, Split split) {
  const fs::path root = FindRoot(folder);
  std::vector<fs::path> files;
  for (size_t file = 0; file < kFiles.size(); ++file) {
    if ((file == kTestFile) == (split == Split::kTest) && fs::exists(root / kFiles[file]))
      files.push_back(root / kFiles[file]);
  }
  return files;
}

std::map<Split, Dataset> Read(const std::string& path, bool rgb, uint64_t data_seed,
                              const std::set<Split>& splits) {
  const bool test = splits.count(Split::kTest), train = splits.size() > (test ? 1 : 0);
  Collector collector(path, rgb, train, test);
  if (fs::is_directory(path)) {
    ReadFromFolder(path, collector);
  } else {
    ReadFromArchive(path, collector);
  }
  collector.CheckWhole();

  std::map<Split, Dataset> result;
  for (Split split : splits) result[split] = Empty(rgb);
  if (test) result[Split::kTest] = std::move(collector.part(kTestFile));
  if (!train) return result;
  std::vector<int32_t> labels;
  for (size_t file = 0; file < kTestFile; ++file) {
    const std::vector<int32_t>& more = collector.part(file).labels;
    labels.insert(labels.end(), more.begin(), more.end());
  }
  const std::vector<uint8_t> validation =
      DealTenths(labels, static_cast<int64_t>(kClasses.size()), data_seed, kValidationStream);
  size_t at = 0;
  for (size_t file = 0; file < kTestFile; ++file) {
    const Dataset part = std::move(collector.part(file));  // freed as soon as it was dealt out
    for (int64_t i = 0; i < part.size(); ++i, ++at) {
      const auto wanted = result.find(validation[at] ? Split::kValidation : Split::kTrain);
      if (wanted != result.end()) wanted->second.Add(part.sequence(i), part.labels[i]);
    }
  }
  return result;
}

void Augment(Batch& batch, uint64_t seed, int64_t epoch) {
  const int64_t channels = batch.channels;
  Check(batch.T == kSeqLen && (channels == 1 || channels == kChannels), "a batch of ", batch.T,
        " steps and ", channels, " channels holds no CIFAR-10 images to augment");
  const int64_t black = channels == 1 ? 1 : 0, values = kSeqLen * channels;
  std::vector<int64_t> image(static_cast<size_t>(values));
  for (int64_t b = 0; b < batch.B; ++b) {
    Random random({seed, kAugmentStream, static_cast<uint64_t>(epoch),
                   static_cast<uint64_t>(batch.indices[b])});
    const int64_t down = random.Between(-kLargestShift, kLargestShift);
    const int64_t right = random.Between(-kLargestShift, kLargestShift);
    const bool mirrored = random.Below(2) == 1;
    int64_t* pixels = batch.ids.data() + b * values;
    std::copy(pixels, pixels + values, image.begin());
    for (int64_t y = 0; y < kSide; ++y) {
      for (int64_t x = 0; x < kSide; ++x) {
        const int64_t from_y = y - down, from_x = (mirrored ? kSide - 1 - x : x) - right;
        const bool inside = from_y >= 0 && from_y < kSide && from_x >= 0 && from_x < kSide;
        for (int64_t c = 0; c < channels; ++c) {
          pixels[(y * kSide + x) * channels + c] =
              inside ? image[(from_y * kSide + from_x) * channels + c] : black;
        }
      }
    }
  }
}

}  // namespace hkt::data::cifar10
