#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "hkt/base/random.h"

// Sizes of attention that have broken kernels.

namespace hkt::testing {

struct AttentionShape {
  int64_t B = 1, H = 1, Hkv = 1, T = 1, D = 1, Dv = 1, L = 1, s = 2;

  std::string ToString() const;  // "B=1 H=1 … s=2"
};

// Widths at which vectors and register tiles end, before and behind.
constexpr int64_t kHeadWidths[] = {1, 3, 8, 20, 40, 59, 64, 111, 128, 256};

// Numbers of tokens, sorted and unique: 1, 2, 3, s - 1 … s + 1, around each of `edges` (e - 1, e,
// e + 1) and its double, and the primes 97 and 193.
std::vector<int64_t> TailLengths(int64_t s, std::initializer_list<int64_t> edges);

// Small and odd, T up to `T_max`, about half of them with grouped heads.
AttentionShape RandomAttentionShape(Random& random, int64_t T_max);

}  // namespace hkt::testing
