#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "hkt/report/plan.h"

namespace hkt::report {

// An empty folder of this test, removed at its end.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  Places places() const { return {path_ / "experiments", path_ / "runs"}; }
  void Write(const std::string& file, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

// A run folder as hkt train, hkt eval and, for models of several levels, hkt analyze leave it: four
// test examples of 10 classes, labels 0 1 2 3, of which the last was predicted as 9.
void WriteFinishedRun(const ExperimentRun& run, const std::filesystem::path& folder);

}  // namespace hkt::report
