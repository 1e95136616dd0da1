#pragma once

// Dropout with a mask that is a function of the seed and the element's position alone.
//
//   out[i] = x[i] * (bits(seed, i) >= threshold ? 65536 / (65536 - threshold) : 0)
//
// bits is the sixteen-bit word i mod 4, lowest first, of Philox2x32-10 (Salmon et al., "Parallel
// random numbers: as easy as 1, 2, 3", SC 2011) with the counter (lower half i / 4, upper half
// upper half of the seed) and the key lower half of the seed; of i / 4 >= 2^32 the upper half is
// added to the counter's. Nothing is stored between the forward and the backward pass, which is the
// same function of the gradient, and the result is bitwise the same for every number of workers and
// every target.
//
// x and out hold n elements without gaps, of type `type`; they may be the same memory. No alignment
// is needed. A dropped element is 0 times x, so that NaN and infinity stay visible. With threshold
// = 65536 everything is dropped.
//
// Cost: about two vector operations an element; bound by memory.

#include <cstdint>

#include "hkt/kernels/parallel.h"
#include "hkt/kernels/tensor.h"

namespace hkt::kernels {

// Of Philox2x32-10, by its authors.
constexpr int kPhiloxRounds = 10;
constexpr uint64_t kPhiloxMultiplier = 0xD256D193;
constexpr uint32_t kPhiloxWeyl = 0x9E3779B9;

struct DropoutParams {
  int64_t n = 0;
  Type type = Type::kFloat32;
  uint64_t seed = 0;
  uint32_t threshold = 0;  // 0 … 65536: 65536 times the probability of being dropped
  const void* x = nullptr;
  void* out = nullptr;
};

void Dropout(const DropoutParams& params, const Parallel& parallel = {});

// The 64 bits of elements 4 block … 4 block + 3, in plain C++: what the vectors compute.
uint64_t PhiloxBits(uint64_t seed, uint64_t block);

}  // namespace hkt::kernels
