#include "hkt/data/task.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "hkt/base/error.h"
#include "hkt/data/bytes.h"
#include "hkt/data/cache.h"
#include "hkt/data/cifar10.h"
#include "hkt/data/imdb.h"
#include "hkt/data/listops.h"
#include "hkt/data/listops_folder.h"
#include "hkt/data/source.h"
#include "hkt/data/text.h"
#include "hkt/io/checksum.h"

namespace hkt::data {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 3> kNames = {"train", "validation", "test"};

bool IsListOps(const DataConfig& config) { return config.task == "listops"; }
bool IsText(const DataConfig& config) { return config.task == "text"; }

uint64_t Seed(const DataConfig& config) { return static_cast<uint64_t>(config.data_seed); }

Dataset CutTo(const Dataset& whole, int64_t seq_len) {
  Dataset cut;
  for (int64_t i = 0; i < whole.size(); ++i)
    cut.AddCut(whole.sequence(i), whole.labels[i], seq_len);
  return cut;
}

std::map<Split, Dataset> LoadListOps(const DataConfig& config, int64_t seq_len,
                                     const std::set<Split>& splits) {
  const listops::Preset& preset = listops::FindPreset(config.preset);
  if (!config.data.empty())
    return listops::ReadFolder(config.data, preset, Seed(config), seq_len, splits);
  std::map<Split, Dataset> result = listops::Generate(preset, Seed(config), splits);
  if (seq_len < preset.max_tokens) {
    for (auto& [split, dataset] : result) dataset = CutTo(dataset, seq_len);
  }
  return result;
}

void CheckNamesData(const DataConfig& config) {
  const std::string_view what =
      config.task == "imdb"
          ? "the archive aclImdb_v1.tar.gz (or .tar.xz) of the Large Movie Review "
            "Dataset, or its unpacked folder aclImdb"
      : IsText(config)
          ? "a file of lines label<TAB>text, a .csv file with the columns label and text, or a "
            "folder that holds train.tsv or train.csv"
          : "the archive cifar-10-binary.tar.gz (or .tar.xz) of CIFAR-10, or its unpacked folder "
            "cifar-10-batches-bin";
  CheckUsage(!config.data.empty(), "task ", config.task, " needs --data PATH: ", what);
}

LoadedTask ReadSource(const DataConfig& config, TaskInfo info, const std::set<Split>& splits,
                      const std::vector<std::string>& classes) {
  if (IsText(config)) {
    text::Result result = text::Read(config.data, info.seq_len, Seed(config), splits, classes);
    info.classes = std::move(result.classes);
    return {std::move(info), std::move(result.splits)};
  }
  auto read = TakesImages(config) ? cifar10::Read(config.data, config.rgb, Seed(config), splits)
                                  : imdb::Read(config.data, info.seq_len, Seed(config), splits);
  return {std::move(info), std::move(read)};
}

// Of every split the key of its cache entry; none where the source cannot be looked at, which the
// reader then says better.
std::optional<std::map<Split, CacheKey>> Keys(const DataConfig& config, const TaskInfo& info,
                                              const std::set<Split>& splits,
                                              const std::vector<std::string>& classes) {
  if (!CacheFolder()) return std::nullopt;
  try {
    std::map<Split, CacheKey> keys;
    std::map<std::vector<fs::path>, std::string> hashes;
    for (Split split : splits) {
      const bool folder = fs::is_directory(config.data);
      const bool listed = folder && config.task == "imdb";
      const std::vector<fs::path> files = IsText(config) ? text::Files(config.data, split)
                                          : !folder      ? std::vector<fs::path>{config.data}
                                          : listed       ? imdb::Folders(config.data, split)
                                                         : cifar10::Files(config.data, split);
      std::string& hash = hashes[files];
      if (hash.empty()) hash = listed ? HashListing(files) : HashFiles(files);
      std::string options =
          Concat("seq_len=", info.seq_len, " data_seed=", config.data_seed, " rgb=", config.rgb);
      if (IsText(config)) {
        io::Xxh3Stream known;
        for (const std::string& name : classes) known.Update(Concat(name.size(), ":", name));
        options += Concat(" files=", text::OwnSplits(config.data),
                          " classes=", classes.empty() ? "found" : known.Hex());
      }
      keys[split] = {config.task, split, options, hash};
    }
    return keys;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

std::optional<LoadedTask> FetchAll(const TaskInfo& info, const std::map<Split, CacheKey>& keys) {
  LoadedTask loaded{info, {}};
  for (const auto& [split, key] : keys) {
    auto entry = Fetch(key, {info.vocabulary, info.seq_len, info.channels});
    if (!entry) return std::nullopt;
    loaded.info.classes = std::move(entry->classes);
    loaded.splits[split] = std::move(entry->dataset);
  }
  return loaded;
}

bool SameSource(const std::map<Split, CacheKey>& a, const std::map<Split, CacheKey>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.second.source == y.second.source;
  });
}

}  // namespace

std::string_view SplitName(Split split) { return kNames[static_cast<size_t>(split)]; }

Split ParseSplit(std::string_view name) {
  for (Split split : kAllSplits) {
    if (SplitName(split) == name) return split;
  }
  throw UsageError(Concat("split is '", name, "', must be one of train|validation|test"));
}

TaskInfo Describe(const DataConfig& config) {
  TaskInfo info;
  info.name = config.task;
  if (config.task == "listops") {
    info.vocabulary = listops::kVocabulary;
    info.seq_len = listops::FindPreset(config.preset).max_tokens;
    for (int64_t digit = 0; digit < listops::kClasses; ++digit)
      info.classes.push_back(std::to_string(digit));
  } else if (config.task == "cifar10") {
    info.vocabulary = config.rgb ? 256 : cifar10::kVocabulary;
    info.channels = config.rgb ? cifar10::kChannels : 1;
    info.seq_len = cifar10::kSeqLen;
    info.classes.assign(cifar10::kClasses.begin(), cifar10::kClasses.end());
    CheckUsage(config.seq_len.value_or(info.seq_len) == info.seq_len, "seq_len is ",
               config.seq_len.value_or(0), ", but an image of task cifar10 always has ",
               info.seq_len, " pixels; leave seq_len out");
  } else if (config.task == "imdb") {
    info.vocabulary = kByteVocabulary;
    info.seq_len = imdb::kSeqLen;
    info.classes = {"neg", "pos"};
  } else if (config.task == "text") {
    info.vocabulary = kByteVocabulary;
    info.seq_len = text::kSeqLen;
  } else {
    throw UsageError(
        Concat("task is '", config.task, "', must be one of listops|cifar10|imdb|text"));
  }
  CheckUsage(!config.rgb || TakesImages(config), "rgb is true, but task ", config.task,
             " has no images; use task cifar10");
  if (config.seq_len) info.seq_len = *config.seq_len;
  CheckUsage(info.seq_len >= 1, "seq_len is ", info.seq_len, ", must be at least 1");
  return info;
}

TaskInfo DescribeWithClasses(const DataConfig& config) {
  return IsText(config) ? LoadTask(config, {}).info : Describe(config);
}

LoadedTask LoadTask(const DataConfig& config, const std::set<Split>& splits,
                    const std::vector<std::string>& classes) {
  TaskInfo info = Describe(config);
  if (IsListOps(config)) {
    auto loaded = LoadListOps(config, info.seq_len, splits);
    return {std::move(info), std::move(loaded)};
  }
  CheckNamesData(config);
  const auto keys = Keys(config, info, splits, classes);
  if (keys && !splits.empty()) {
    if (auto loaded = FetchAll(info, *keys)) return *std::move(loaded);
  }
  LoadedTask loaded = ReadSource(config, info, splits, classes);
  if (!keys) return loaded;
  // What was replaced while it was read belongs to no hash.
  const auto now = Keys(config, info, splits, classes);
  if (!now || !SameSource(*keys, *now)) return loaded;
  for (const auto& [split, key] : *keys) {
    // Moved there and back: an entry takes a split as it is, and these may be large.
    CachedSplit entry{std::move(loaded.splits[split]), loaded.info.classes};
    Store(key, entry, config.data);
    loaded.splits[split] = std::move(entry.dataset);
  }
  return loaded;
}

std::map<Split, Dataset> Load(const DataConfig& config, std::initializer_list<Split> splits) {
  return LoadTask(config, splits).splits;
}

bool TakesImages(const DataConfig& config) { return config.task == "cifar10"; }

std::vector<uint16_t> Encode(const DataConfig& config, std::string_view text, bool* truncated) {
  const int64_t seq_len = Describe(config).seq_len;
  Check(!TakesImages(config),
        "task cifar10 classifies images, not texts; give a file of images, each 3072 bytes (the "
        "red, the green and the blue plane), as 'hkt predict RUN FILE.bin'");
  if (!IsListOps(config)) return EncodeBytes(text, seq_len, truncated);
  std::vector<uint16_t> ids = listops::Parse(text);
  const bool cut = static_cast<int64_t>(ids.size()) > seq_len;
  if (cut) ids.resize(static_cast<size_t>(seq_len));
  if (truncated != nullptr) *truncated = cut;
  return ids;
}

Dataset EncodeImages(const DataConfig& config, std::string_view bytes, const std::string& name) {
  Check(TakesImages(config), "task ", config.task, " classifies texts, not images");
  return cifar10::ParseImages(bytes, name, config.rgb);
}

}  // namespace hkt::data
