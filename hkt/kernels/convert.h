#pragma once

#include <bit>
#include <cstdint>

namespace hkt::kernels {

// bfloat16 is the upper half of a float32.
inline float FromBFloat16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// To the nearest, ties to even; NaN stays NaN.
inline uint16_t ToBFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

// IEEE binary16. Subnormals are scaled by a float product, which is exact.
inline float FromFloat16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = half & 0x7FFF;
  if (magnitude >= 0x7C00) {  // infinity, NaN
    return std::bit_cast<float>(sign | 0x7F800000 | ((magnitude & 0x3FF) << 13));
  }
  if (magnitude < 0x400) {  // subnormal: a multiple of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (uint32_t{112} << 23)));
}

// To the nearest, ties to even; beyond 65504 infinity; NaN stays NaN.
inline uint16_t ToFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude < 0x38800000) {  // below 2^-14: adding 0.5 rounds at the last bit of a subnormal
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3F000000));
  }
  const uint32_t rebased = magnitude - (uint32_t{112} << 23);
  return static_cast<uint16_t>(sign | ((rebased + 0xFFF + ((rebased >> 13) & 1)) >> 13));
}

}  // namespace hkt::kernels
