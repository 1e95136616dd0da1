#include "hkt/base/text.h"

#include <cmath>

#include "hkt/base/error.h"

namespace hkt {
namespace {

void AppendEscaped(std::string& out, unsigned char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += {'\\', 'x', kDigits[byte / 16], kDigits[byte % 16]};
}

}  // namespace

std::string Printable(std::string_view text) {
  constexpr unsigned char kC1 = 0xc2;  // first byte of U+0080 ... U+00BF
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    if (byte == kC1 && next >= 0x80 && next < 0xa0) {
      AppendEscaped(out, byte);
      AppendEscaped(out, next);
      ++i;
    } else if (byte < 32 || byte == 127) {
      AppendEscaped(out, byte);
    } else {
      out += text[i];
    }
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
