#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hkt::data {

// One step of a sequence for a person to read, as UTF-8. ListOps: its symbol ("[MAX", "7", "]").
// Texts of bytes: the character, what is not printable ASCII as \xNN. Images: the value 0 … 255,
// of several channels all of them, by commas. Any other task: the id. Padding is "".
std::string StepText(std::string_view task, std::span<const uint16_t> step);

}  // namespace hkt::data
