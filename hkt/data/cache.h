#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hkt/data/dataset.h"
#include "hkt/data/task.h"

// Splits that were read once, ready for the next time: a safetensors file a split with its tokens,
// offsets and labels. An entry is found by a key that names every option that decides what is in
// it, the source's hash and the version of hkt, and is believed only when its checksum agrees and
// it holds that very key. The folder is $HKT_CACHE, else $XDG_CACHE_HOME/hkt, else ~/.cache/hkt;
// HKT_CACHE=0 turns the cache off, and 1 is the folder of those without one of their own. Trouble
// with the cache is a warning, never an error: without it everything is right, only slower.

namespace hkt::data {

// None: the cache is off, or there is no home folder.
std::optional<std::filesystem::path> CacheFolder();

struct CacheKey {
  std::string task;
  Split split = Split::kTrain;
  std::string options;  // "seq_len=1024 data_seed=1 ..."
  std::string source;   // hash of what was read
};

struct CachedSplit {
  Dataset dataset;
  std::vector<std::string> classes;
};

// What the entries of a task look like; an entry that does not is not believed.
struct CacheLimits {
  int64_t vocabulary, seq_len, channels;
};

// None where there is no such entry. One that is broken, cut or not what its name says is warned
// of, and none as well: Store() then replaces it.
std::optional<CachedSplit> Fetch(const CacheKey& key, const CacheLimits& limits);

// Replaces the entry, whole or not at all; two processes at once write the same bytes. A failure
// (no room, a folder that cannot be written) is a warning. `path` of the source is for people.
void Store(const CacheKey& key, const CachedSplit& entry, const std::string& path);

struct CacheEntry {
  std::filesystem::path file;
  std::uintmax_t bytes = 0;
  bool ok = false;  // its checksum agrees and it is one of ours
  std::string task, split, options, path, hkt_version;
  int64_t examples = 0;
};

// In order of name. Files of other programs are passed over. Error where the cache's folder cannot
// be read, or is none.
std::vector<CacheEntry> ListCache();

// Removes the entries, and what killed processes left of them; returns the number of files. Files
// of other programs stay.
int64_t ClearCache();

}  // namespace hkt::data
