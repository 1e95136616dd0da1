#include "hkt/base/text.h"

#include <algorithm>
#include <cmath>

#include "hkt/base/error.h"

namespace hkt {
namespace {

void AppendEscaped(std::string& out, unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
}

// Bytes of the character that `text` begins with; 0 where it begins with none of UTF-8.
size_t CharacterLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80                       ? 1
                        : byte(0) >= 0xc2 && byte(0) <= 0xdf ? 2
                        : byte(0) >= 0xe0 && byte(0) <= 0xef ? 3
                        : byte(0) >= 0xf0 && byte(0) <= 0xf4 ? 4
                                                             : 0;
  if (length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  // Longer than need be, surrogates, above the last character.
  if (length > 1 && ((byte(0) == 0xe0 && byte(1) < 0xa0) || (byte(0) == 0xed && byte(1) > 0x9f) ||
                     (byte(0) == 0xf0 && byte(1) < 0x90) || (byte(0) == 0xf4 && byte(1) > 0x8f)))
    return 0;
  return length;
}

// NUL ... U+001F, U+007F ... U+009F.
bool IsControl(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  return first < 32 || first == 127 ||
         (first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

}  // namespace

std::string Printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = CharacterLength(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    if (length == 0 || IsControl(character)) {
      for (const char c : character) AppendEscaped(out, static_cast<unsigned char>(c));
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string PlainNumber(double value) {
  return std::floor(value) == value && std::fabs(value) < 1e15
             ? std::to_string(static_cast<int64_t>(value))
             : Concat(value);
}

std::string Counted(int64_t count, std::string_view singular, std::string_view plural) {
  if (count == 1) return Concat(count, " ", singular);
  return plural.empty() ? Concat(count, " ", singular, "s") : Concat(count, " ", plural);
}

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? "'\\''" : std::string(1, c);
  return word + "'";
}

std::string_view WithoutByteOrderMark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

}  // namespace hkt
