#include "hkt/data/source.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

#include "hkt/base/error.h"
#include "hkt/io/checksum.h"
#include "hkt/io/file.h"

namespace hkt::data {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = 1 << 20;

void AddContent(const fs::path& path, io::Xxh3Stream& stream) {
  io::CheckPlainFile(path);
  std::ifstream file(path, std::ios::binary);
  if (!file.is_open()) throw Error(io::SystemMessage("read", path, errno));
  std::string block(kBlockBytes, '\0');
  int64_t size = 0;
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())), file.gcount() > 0) {
    const auto got = static_cast<size_t>(file.gcount());
    stream.Update(std::string_view(block).substr(0, got));
    size += file.gcount();
  }
  Check(!file.bad(), path.string(), ": reading failed");
  stream.Update(Concat(size, ":", path.filename().string(), "\n"));
}

}  // namespace

std::string HashFiles(const std::vector<fs::path>& files) {
  io::Xxh3Stream stream;
  for (const fs::path& file : files) AddContent(file, stream);
  return stream.Hex();
}

std::string HashListing(const std::vector<fs::path>& folders) {
  std::vector<std::string> lines;
  for (const fs::path& folder : folders) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      struct stat s;
      if (::lstat(entry.path().c_str(), &s) != 0)
        throw Error(io::SystemMessage("read", entry.path(), errno));
      lines.push_back(Concat(entry.path().string(), " ", s.st_mode, " ", s.st_size, " ", s.st_ino,
                             " ", s.st_mtim.tv_sec, ".", s.st_mtim.tv_nsec, " ", s.st_ctim.tv_sec,
                             ".", s.st_ctim.tv_nsec, "\n"));
    }
  }
  std::sort(lines.begin(), lines.end());
  io::Xxh3Stream stream;
  for (const std::string& line : lines) stream.Update(line);
  return stream.Hex();
}

}  // namespace hkt::data
