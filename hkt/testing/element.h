#pragma once

#include <cstdint>

// The element types that kernels read and write, in plain arithmetic and bit by bit: tests share no
// conversion with what they test.

namespace hkt::testing {

enum class Element { kFloat32, kBFloat16, kFloat16 };

const char* NameOf(Element element);

constexpr int64_t BytesOf(Element element) { return element == Element::kFloat32 ? 4 : 2; }

// Bits of significand, for UnitRoundoff (error_bound.h).
constexpr int SignificandOf(Element element) {
  return element == Element::kFloat32 ? 24 : element == Element::kBFloat16 ? 8 : 11;
}

// Half the distance of the smallest numbers: what rounding may add where the type is denormal.
constexpr double DenormalRounding(Element element) {
  return element == Element::kFloat16 ? 0x1p-25 : 0x1p-133;
}

// The bits of the nearest number of the type, ties to even; beyond the largest one, infinity.
uint32_t Encode(Element element, double x);
// Exact.
double Decode(Element element, uint32_t bits);

// Element number `index` of an array.
uint32_t BitsAt(Element element, const void* data, int64_t index);
void SetBitsAt(Element element, void* data, int64_t index, uint32_t bits);

}  // namespace hkt::testing
