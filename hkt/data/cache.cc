#include "hkt/data/cache.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <regex>

#include "hkt/base/error.h"
#include "hkt/base/version.h"
#include "hkt/base/warn.h"
#include "hkt/io/checksum.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/io/safetensors.h"

namespace hkt::data {
namespace {

namespace fs = std::filesystem;

// To be raised when what the readers give changes within one version of hkt, or the format does.
constexpr int kFormat = 1;

constexpr const char *kKey = "key", *kTask = "task", *kSplit = "split", *kOptions = "options",
                     *kPath = "path", *kVersion = "hkt_version", *kClasses = "classes",
                     *kChannels = "channels", *kTruncated = "truncated";

std::string Text(const CacheKey& key) {
  return Concat("format=", kFormat, " hkt=", Version(), " task=", key.task,
                " split=", SplitName(key.split), " ", key.options, " source=", key.source);
}

fs::path FileOf(const fs::path& folder, const CacheKey& key) {
  const std::string text = Text(key);
  return folder / Concat(key.task, "-", SplitName(key.split), "-",
                         io::Xxh3(std::as_bytes(std::span(text))), ".safetensors");
}

// An entry's name, or that of what AtomicFile leaves when it is killed.
bool IsOurs(const std::string& name) {
  static const std::regex pattern(
      "[a-z0-9]+-(train|validation|test)-[0-9a-f]{32}\\.safetensors(\\.tmp-[0-9]+)?");
  return std::regex_match(name, pattern);
}

template <class T>
std::span<const std::byte> Bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
std::vector<T> Numbers(const io::SafetensorsFile& file, const char* name, io::Dtype dtype) {
  const io::TensorView& view = file.at(name);
  Check(view.dtype == dtype, "tensor ", name, " is ", io::Name(view.dtype));
  std::vector<T> values(view.data.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

int64_t Whole(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  Check(error == std::errc() && end == text.data() + text.size(), "'", text, "' is no number");
  return value;
}

// Ids 1 ... 256 and values 0 ... 255 fit a byte: half the file, half the time.
bool FitsBytes(const Dataset& dataset, uint16_t base) {
  return std::all_of(dataset.tokens.begin(), dataset.tokens.end(),
                     [&](uint16_t token) { return token >= base && token - base < 256; });
}

uint16_t Base(int64_t channels) { return channels == 1 ? 1 : 0; }

void CheckDataset(const Dataset& d, int64_t classes, const CacheLimits& limits) {
  Check(d.channels == limits.channels && d.offsets.size() == d.labels.size() + 1 &&
            d.offsets.front() == 0 && d.offsets.back() == static_cast<int64_t>(d.tokens.size()),
        "the tensors do not fit each other");
  for (int64_t i = 0; i < d.size(); ++i) {
    const int64_t count = d.offsets[i + 1] - d.offsets[i];
    Check(count >= 0 && count % d.channels == 0 && count / d.channels <= limits.seq_len,
          "sequence ", i, " has ", count, " values");
    Check(d.labels[i] >= 0 && d.labels[i] < classes, "the label of sequence ", i, " is ",
          d.labels[i]);
  }
  for (uint16_t token : d.tokens)
    Check(token >= Base(d.channels) && token < limits.vocabulary, "a token is ", token);
}

CachedSplit Read(const io::SafetensorsFile& file, const CacheKey& key, const CacheLimits& limits) {
  Check(!file.checksum().empty() && file.Meta(kKey) == Text(key),
        "it is not the entry that its name says");
  CachedSplit entry;
  Dataset& d = entry.dataset;
  d.channels = Whole(file.Meta(kChannels));
  d.truncated = Whole(file.Meta(kTruncated));
  const io::TensorView& tokens = file.at("tokens");
  if (tokens.dtype == io::Dtype::kU8) {
    const uint16_t base = Base(d.channels);
    d.tokens.resize(tokens.data.size());
    for (size_t i = 0; i < d.tokens.size(); ++i)
      d.tokens[i] = static_cast<uint16_t>(std::to_integer<uint16_t>(tokens.data[i]) + base);
  } else {
    d.tokens = Numbers<uint16_t>(file, "tokens", io::Dtype::kU16);
  }
  d.offsets = Numbers<int64_t>(file, "offsets", io::Dtype::kI64);
  d.labels = Numbers<int32_t>(file, "labels", io::Dtype::kI32);
  for (const auto& name : io::ParseJson<nlohmann::json>(file.Meta(kClasses), "classes"))
    entry.classes.push_back(name.get<std::string>());
  CheckDataset(d, static_cast<int64_t>(entry.classes.size()), limits);
  return entry;
}

// What is not UTF-8 is replaced, as metadata must be.
std::string Utf8(const std::string& text) {
  return nlohmann::json::parse(io::CompactJson(text)).get<std::string>();
}

// The entries and all else in the folder of the cache; none where it is off or not there yet.
std::vector<fs::directory_entry> InFolder() {
  const auto folder = CacheFolder();
  std::error_code error;
  if (!folder || !fs::exists(*folder, error)) return {};
  Check(fs::is_directory(*folder, error), folder->string(), ": the cache is not a folder but ",
        io::KindOf(*folder), "; HKT_CACHE names another place, HKT_CACHE=0 turns it off");
  const fs::directory_iterator files(*folder, error);
  if (error) throw Error(io::SystemMessage("read the folder", *folder, error.value()));
  return {begin(files), end(files)};
}

void WarnOf(const fs::path& file, const std::string& problem) {
  WarnOnce(Concat("cache entry ", file.string(), ": ", problem, "; made anew from the source"));
}

}  // namespace

std::optional<fs::path> CacheFolder() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const std::string folder = variable("HKT_CACHE"); !folder.empty()) {
    if (folder == "0") return std::nullopt;
    if (folder != "1") return fs::absolute(folder).lexically_normal();
  }
  const fs::path base = variable("XDG_CACHE_HOME");
  if (base.is_absolute()) return base / "hkt";  // a relative one is to be ignored, by its own rule
  const std::string home = variable("HOME");
  if (home.empty()) return std::nullopt;
  return fs::path(home) / ".cache" / "hkt";
}

std::optional<CachedSplit> Fetch(const CacheKey& key, const CacheLimits& limits) {
  const auto folder = CacheFolder();
  if (!folder) return std::nullopt;
  const fs::path path = FileOf(*folder, key);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  try {
    return Read(io::SafetensorsFile(path), key, limits);
  } catch (const std::exception& problem) {  // Error, or what a parser throws at odd metadata
    WarnOf(path, problem.what());
    return std::nullopt;
  }
}

void Store(const CacheKey& key, const CachedSplit& entry, const std::string& path) {
  const auto folder = CacheFolder();
  if (!folder) return;
  const Dataset& d = entry.dataset;
  std::vector<uint8_t> narrow;
  const bool fits = FitsBytes(d, Base(d.channels));
  if (fits) {
    narrow.resize(d.tokens.size());
    for (size_t i = 0; i < narrow.size(); ++i)
      narrow[i] = static_cast<uint8_t>(d.tokens[i] - Base(d.channels));
  }
  const auto size = [](const auto& values) {
    return std::vector<int64_t>{static_cast<int64_t>(values.size())};
  };
  const io::TensorViews tensors = {
      {"tokens", fits ? io::TensorView{io::Dtype::kU8, size(narrow), Bytes(narrow)}
                      : io::TensorView{io::Dtype::kU16, size(d.tokens), Bytes(d.tokens)}},
      {"offsets", {io::Dtype::kI64, size(d.offsets), Bytes(d.offsets)}},
      {"labels", {io::Dtype::kI32, size(d.labels), Bytes(d.labels)}}};
  try {
    io::CreateFolders(*folder);
    io::WriteSafetensors(FileOf(*folder, key), tensors,
                         {{kKey, Text(key)},
                          {kTask, key.task},
                          {kSplit, std::string(SplitName(key.split))},
                          {kOptions, key.options},
                          {kPath, Utf8(path)},
                          {kVersion, std::string(Version())},
                          {kClasses, io::CompactJson(entry.classes)},
                          {kChannels, Concat(d.channels)},
                          {kTruncated, Concat(d.truncated)}});
  } catch (const Error& error) {
    WarnOnce(Concat(error.what(),
                    "; going on without the cache (HKT_CACHE names another folder, "
                    "HKT_CACHE=0 turns it off)"));
  }
}

std::vector<CacheEntry> ListCache() {
  std::vector<CacheEntry> entries;
  std::error_code error;
  for (const fs::directory_entry& file : InFolder()) {
    if (!file.is_regular_file(error) || !IsOurs(file.path().filename().string())) continue;
    CacheEntry entry;
    entry.file = file.path();
    entry.bytes = file.file_size(error);
    try {
      const io::SafetensorsFile content(file.path());
      entry.task = content.Meta(kTask);
      entry.split = content.Meta(kSplit);
      entry.options = content.Meta(kOptions);
      entry.path = content.Meta(kPath);
      entry.hkt_version = content.Meta(kVersion);
      entry.examples = content.at("labels").shape.at(0);
      entry.ok = !content.checksum().empty();
    } catch (const std::exception&) {
      entry.ok = false;
    }
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const CacheEntry& a, const CacheEntry& b) { return a.file < b.file; });
  return entries;
}

int64_t ClearCache() {
  int64_t removed = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : InFolder()) {
    const fs::path& file = entry.path();
    if (!IsOurs(file.filename().string())) continue;
    fs::remove(file, error);
    if (error) throw Error(io::SystemMessage("remove", file, error.value()));
    ++removed;
  }
  return removed;
}

}  // namespace hkt::data
