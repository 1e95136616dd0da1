#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace hkt::data {

// Texts as bytes: id = byte + 1, so that 0 stays padding.
inline constexpr int64_t kByteVocabulary = 257;

// The first seq_len bytes; *truncated (may be null) says whether there were more.
inline std::vector<uint16_t> EncodeBytes(std::string_view text, int64_t seq_len, bool* truncated) {
  const size_t kept = std::min(text.size(), static_cast<size_t>(seq_len));
  if (truncated != nullptr) *truncated = kept < text.size();
  std::vector<uint16_t> ids(kept);
  for (size_t i = 0; i < kept; ++i)
    ids[i] = static_cast<uint16_t>(static_cast<unsigned char>(text[i]) + 1);
  return ids;
}

}  // namespace hkt::data
