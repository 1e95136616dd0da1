// The walk through an archive.

#include "hkt/data/archive.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return hkt::fuzz::Run(data, size, [](std::string_view bytes) {
    constexpr size_t kMost = 1024;
    hkt::data::ReadArchive(
        bytes, "input", kMost, [](const std::string& path) { return path.size() % 2 == 0; },
        [](const std::string& path, const std::string& content) {
          hkt::fuzz::Promise(path.size() % 2 == 0, "only what is wanted is taken");
          hkt::fuzz::Promise(!path.empty() && path[0] != '/', "no path is absolute");
          hkt::fuzz::Promise(content.size() <= kMost, "no more than was asked for");
        });
  });
}
