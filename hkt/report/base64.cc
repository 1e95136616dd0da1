#include "hkt/report/base64.h"

#include "hkt/base/error.h"

namespace hkt::report {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string EncodeBase64(std::span<const uint8_t> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) group = group << 8 | (i + j < bytes.size() ? bytes[i + j] : 0U);
    for (size_t j = 0; j < 4; ++j) {
      text += i + j <= bytes.size() ? kDigits[group >> (18 - 6 * j) & 63] : '=';
    }
  }
  return text;
}

std::vector<uint8_t> DecodeBase64(std::string_view text, const std::string& what) {
  Check(text.size() % 4 == 0, what, ": base64 of ", text.size(),
        " characters, must be a multiple of 4");
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 4 * 3);
  size_t padding = 0;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const char c = text[i + j];
      const size_t digit = kDigits.find(c);
      if (c == '=' && i + 4 == text.size() && j >= 2) {
        ++padding;
      } else {
        Check(digit != std::string_view::npos && padding == 0, what, ": not base64 at character ",
              i + j);
      }
      group = group << 6 | (c == '=' ? 0U : static_cast<uint32_t>(digit));
    }
    for (size_t j = 0; j < 3; ++j) bytes.push_back(static_cast<uint8_t>(group >> (16 - 8 * j)));
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}  // namespace hkt::report
