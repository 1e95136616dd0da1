#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hkt::data {

// One token for a person to read, as UTF-8: ListOps its symbol ("[MAX", "7", "]"), texts of bytes
// the character, what is not printable ASCII as \xNN; any other task the number. 0 is "".
std::string TokenText(std::string_view task, uint16_t id);

}  // namespace hkt::data
