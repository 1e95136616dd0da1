#include "hkt/testing/element.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace hkt::testing {
namespace {

// A type of 16 or 32 bits: sign, exponent, and `fraction` bits behind the point.
struct Format {
  int bits, fraction, bias;
};

constexpr Format FormatOf(Element element) {
  if (element == Element::kFloat32) return {32, 23, 127};
  return element == Element::kBFloat16 ? Format{16, 7, 127} : Format{16, 10, 15};
}

}  // namespace

const char* NameOf(Element element) {
  return element == Element::kFloat32    ? "float32"
         : element == Element::kBFloat16 ? "bfloat16"
                                         : "float16";
}

uint32_t Encode(Element element, double x) {
  const Format f = FormatOf(element);
  const int exponents = f.bits - 1 - f.fraction;
  const uint32_t sign = std::signbit(x) ? uint32_t{1} << (f.bits - 1) : 0;
  const uint32_t infinity = ((uint32_t{1} << exponents) - 1) << f.fraction;
  if (std::isnan(x)) return sign | infinity | (uint32_t{1} << (f.fraction - 1));
  if (x == 0) return sign;
  if (std::isinf(x)) return sign | infinity;
  // In units of the last place, below 2^-(bias - 1) those of the denormal numbers.
  const int exponent = std::max(std::ilogb(x), 1 - f.bias);
  const double units = std::nearbyint(std::ldexp(std::abs(x), f.fraction - exponent));
  // Exponent and fraction are added, so that rounding up carries into the exponent, from the
  // largest number to infinity and from the denormal numbers to the others.
  const double code = std::ldexp(exponent + f.bias - 1, f.fraction) + units;
  return sign | (code >= infinity ? infinity : static_cast<uint32_t>(code));
}

double Decode(Element element, uint32_t bits) {
  const Format f = FormatOf(element);
  const uint32_t exponents = (uint32_t{1} << (f.bits - 1 - f.fraction)) - 1;
  const uint32_t exponent = (bits >> f.fraction) & exponents;
  const uint32_t fraction = bits & ((uint32_t{1} << f.fraction) - 1);
  const double sign = (bits >> (f.bits - 1)) & 1 ? -1.0 : 1.0;
  if (exponent == exponents) {
    return fraction ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - f.bias - f.fraction);
  return sign * std::ldexp(fraction + (uint32_t{1} << f.fraction),
                           static_cast<int>(exponent) - f.bias - f.fraction);
}

uint32_t BitsAt(Element element, const void* data, int64_t index) {
  uint32_t wide = 0;
  uint16_t narrow = 0;
  const char* at = static_cast<const char*>(data) + index * BytesOf(element);
  if (element == Element::kFloat32) {
    std::memcpy(&wide, at, sizeof wide);
    return wide;
  }
  std::memcpy(&narrow, at, sizeof narrow);
  return narrow;
}

void SetBitsAt(Element element, void* data, int64_t index, uint32_t bits) {
  char* at = static_cast<char*>(data) + index * BytesOf(element);
  const auto narrow = static_cast<uint16_t>(bits);
  if (element == Element::kFloat32)
    std::memcpy(at, &bits, sizeof bits);
  else
    std::memcpy(at, &narrow, sizeof narrow);
}

}  // namespace hkt::testing
