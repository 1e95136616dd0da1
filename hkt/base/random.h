#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>
#include <random>
#include <utility>
#include <vector>

namespace hkt {

// Seeded random numbers that are the same on every platform: std::mt19937_64 is fixed by the
// standard, its distributions are not, so the few that are needed are here.
class Random {
 public:
  // Streams with different keys are independent: Random({seed, kShuffle, epoch}).
  explicit Random(std::initializer_list<uint64_t> key) : engine_(Mix(key)) {}

  uint64_t Bits() { return engine_(); }

  // Uniform integer in [0, n), n >= 1, without bias.
  uint64_t Below(uint64_t n) {
    const uint64_t reject = (0 - n) % n;  // 2^64 mod n: the draws below it would be one too many
    for (;;) {
      const uint64_t bits = Bits();
      if (bits >= reject) return bits % n;
    }
  }

  // Uniform integer in [low, high].
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low) + 1));
  }

  // Uniform double in [0, 1), 53 bits.
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1.0p-53; }

  // Standard normal, Box and Muller's cosine. Not the same to the last bit on every platform: the
  // logarithm and the cosine are the C library's.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(2 * std::numbers::pi * Uniform());
  }

  // Fisher–Yates.
  template <class T>
  void Shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  // splitmix64 over the key's words: nearby seeds give unrelated streams.
  static uint64_t Mix(std::initializer_list<uint64_t> key) {
    uint64_t state = 0x9e3779b97f4a7c15u;
    for (uint64_t word : key) {
      state += word + 0x9e3779b97f4a7c15u;
      state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
      state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
      state ^= state >> 31;
    }
    return state;
  }

  std::mt19937_64 engine_;
};

}  // namespace hkt
