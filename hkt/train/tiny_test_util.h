#pragma once

#include <filesystem>
#include <string>

#include "hkt/base/config.h"
#include "hkt/data/dataset.h"

namespace hkt::train {

// A model of a few hundred parameters with all parts (two levels, gates, dropout), one thread.
Config TinyConfig();

// `samples` sequences of 2 … 12 ListOps ids; the label is the first digit, so that a little can be
// learned.
data::Dataset TinyData(int64_t samples, uint64_t seed);

// A folder of its own that is removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace hkt::train
