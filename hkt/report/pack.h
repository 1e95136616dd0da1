#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Labels as text: `bits` each, the first in the lowest bits of the first byte, in base64.

namespace hkt::report {

// Bits that the labels 0 … classes - 1 need; at least 1.
int BitsFor(int64_t classes);

// Error where a label is below 0 or needs more bits (1 … 16).
std::string PackLabels(const std::vector<int32_t>& labels, int bits);

}  // namespace hkt::report
