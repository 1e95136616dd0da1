#include "hkt/data/task.h"

#include "hkt/base/error.h"
#include "hkt/data/imdb.h"
#include "hkt/data/listops.h"
#include "hkt/data/listops_folder.h"

namespace hkt::data {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"train", "validation", "test"};

bool IsListOps(const DataConfig& config) { return config.task == "listops"; }

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
  } else if (config.task == "imdb") {
    info.vocabulary = imdb::kVocabulary;
    info.seq_len = imdb::kSeqLen;
    info.classes = {"neg", "pos"};
  } else {
    throw UsageError(Concat("task is '", config.task, "', must be one of listops|imdb"));
  }
  if (config.seq_len) info.seq_len = *config.seq_len;
  CheckUsage(info.seq_len >= 1, "seq_len is ", info.seq_len, ", must be at least 1");
  return info;
}

std::map<Split, Dataset> Load(const DataConfig& config, std::initializer_list<Split> splits) {
  const int64_t seq_len = Describe(config).seq_len;
  const std::set<Split> wanted(splits);
  if (IsListOps(config)) return LoadListOps(config, seq_len, wanted);
  CheckUsage(!config.data.empty(),
             "task imdb needs --data PATH: the archive aclImdb_v1.tar.gz (or .tar.xz) of the Large "
             "Movie Review Dataset, "
             "or its unpacked folder aclImdb");
  return imdb::Read(config.data, seq_len, Seed(config), wanted);
}

std::vector<uint16_t> Encode(const DataConfig& config, std::string_view text, bool* truncated) {
  const int64_t seq_len = Describe(config).seq_len;
  if (!IsListOps(config)) return imdb::Encode(text, seq_len, truncated);
  std::vector<uint16_t> ids = listops::Parse(text);
  const bool cut = static_cast<int64_t>(ids.size()) > seq_len;
  if (cut) ids.resize(static_cast<size_t>(seq_len));
  if (truncated != nullptr) *truncated = cut;
  return ids;
}

}  // namespace hkt::data
