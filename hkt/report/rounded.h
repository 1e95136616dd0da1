#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "hkt/report/experiment.h"

namespace hkt::report {

// A number to five significant digits, which is more than a figure or a table can show, in a small
// file; one that is not finite is null. Anything else as it is.
inline Json Rounded(const Json& value) {
  if (!value.is_number_float()) return value;
  const auto number = value.get<double>();
  if (!std::isfinite(number)) return nullptr;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.5g", number);
  return std::stod(text.data());
}

}  // namespace hkt::report
