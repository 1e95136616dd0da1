#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Values as the text of messages and tables.

namespace hkt {

// Control characters, and bytes that are not UTF-8, as \x0a: one line whatever is quoted in it, and
// nothing that a terminal would obey or could not show. All else stays as it is.
std::string Printable(std::string_view text);

// "1048576", "0.999999", "1e+30": whole numbers are written out.
std::string PlainNumber(double value);

// "1 example", "2 examples"; `plural` where it is not one with an s.
std::string Counted(int64_t count, std::string_view singular, std::string_view plural = {});

// As one word of a shell's command line: in single quotes where it needs them.
std::string ShellWord(std::string_view text);

// Without the byte order mark that some editors put before UTF-8.
std::string_view WithoutByteOrderMark(std::string_view text);

}  // namespace hkt
