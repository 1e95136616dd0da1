#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace hkt::io {

// XXH3-128 of bytes that come in pieces: 32 lower-case hex digits, the same on every platform. It
// finds damage, not malice.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();

  void Update(std::span<const std::byte> bytes);
  void Update(std::string_view text);
  std::string Hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string Xxh3(std::span<const std::byte> bytes);

// CRC-32C (Castagnoli, RFC 3720), the checksum of TFRecord files.
uint32_t Crc32c(std::string_view bytes);

}  // namespace hkt::io
