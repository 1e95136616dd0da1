#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace hkt::data {

// The plain bytes of a file that is compressed with gzip, bzip2 or xz, or not at all. The formats'
// checksums are verified when the end is reached: whoever must know that nothing was damaged reads
// up to there. Reasons of failures are short ("the checksum does not agree"); the caller names the
// file.
class Unpacker {
 public:
  virtual ~Unpacker() = default;
  Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // Up to `size` bytes; 0 at the end. Throws Error with the reason.
  virtual size_t Read(char* buffer, size_t size) = 0;

  // How much of the compressed bytes was read, 0 ... 1.
  virtual double Share() const = 0;
};

std::unique_ptr<Unpacker> UnpackFile(const std::string& path);
std::unique_ptr<Unpacker> UnpackMemory(std::string_view content);  // which must outlive it

}  // namespace hkt::data
