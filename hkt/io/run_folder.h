#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "hkt/base/config.h"

namespace hkt::io {

// The folder of one run and the names of what lies in it.
class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path config() const { return root_ / "config.json"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path model() const { return root_ / "model.safetensors"; }  // best on validation
  std::filesystem::path state() const {
    return root_ / "state.safetensors";
  }  // all that resuming needs
  // An older state of --keep-states.
  std::filesystem::path state_after(int64_t step) const;
  // The steps of those that are there, ascending.
  std::vector<int64_t> kept_states() const;
  std::filesystem::path evaluation() const { return root_ / "eval.json"; }
  std::filesystem::path analysis() const { return root_ / "analysis.json"; }

  // Any of the files above is there.
  bool HoldsRun() const;

  // config.json, resolved. Throws Error when there is none, when it is damaged or was written by a
  // newer version.
  Config ReadConfig() const;
  void WriteConfig(const Config& config) const;

 private:
  std::filesystem::path root_;
};

// Creates and returns the first folder <parent>/<stem>-<n>, n = 1, 2, …, that does not exist.
std::filesystem::path CreateNumberedFolder(const std::filesystem::path& parent,
                                           const std::string& stem);

// Holds a folder for this process until the object or the process ends, also by SIGKILL. Throws
// Error when another process holds it. Removes temporary files that a killed process left.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

// Throws Error when `version` ("0.2.0"), which wrote `what`, is newer than this program or no
// version.
void CheckWrittenBy(std::string_view version, const std::string& what);

}  // namespace hkt::io
