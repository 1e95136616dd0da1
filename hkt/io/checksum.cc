#include "hkt/io/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdio>

namespace hkt::io {

// On the heap and by the library's own allocation: the state wants an alignment of 64 bytes.
struct Xxh3Stream::State {
  State() : xxh(XXH3_createState()) {
    if (xxh == nullptr) throw std::bad_alloc();
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }

  XXH3_state_t* xxh;
};

Xxh3Stream::Xxh3Stream() : state_(std::make_unique<State>()) {}
Xxh3Stream::~Xxh3Stream() = default;

void Xxh3Stream::Update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

void Xxh3Stream::Update(std::string_view text) { Update(std::as_bytes(std::span(text))); }

std::string Xxh3Stream::Hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  std::array<char, 33> text;
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

std::string Xxh3(std::span<const std::byte> bytes) {
  Xxh3Stream stream;
  stream.Update(bytes);
  return stream.Hex();
}

}  // namespace hkt::io
