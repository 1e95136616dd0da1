#pragma once

#include <span>
#include <string>

// How tests compare: every element against its own reference in double, with a bound that was
// derived (error_bound.h). A comparison fails on NaN, on infinity, on another number of elements,
// and where the result is all zero while the reference is not: a kernel that wrote nothing must not
// pass because the numbers are small.

namespace hkt::testing {

struct Comparison {
  bool ok = false;
  double worst = 0;     // largest |got - want|
  std::string message;  // for a person: where, what, by how much

  explicit operator bool() const { return ok; }
};

// ok iff |got[i] - want[i]| <= bound for every i.
Comparison Compare(std::span<const double> got, std::span<const double> want, double bound);

// ok iff |got[i] - want[i]| <= bounds[i] for every i. The bounds are those of float32 arithmetic or
// wider: a reference in double is then off by at most 2^-29 of them itself, which is what tells a
// `want` that is 0 up to its own rounding from one that a result of nothing but 0 misses.
Comparison Compare(std::span<const double> got, std::span<const double> want,
                   std::span<const double> bounds);

// ok iff both hold the same bits; NaN equals NaN of the same bits, 0 differs from -0.
Comparison CompareBits(std::span<const double> got, std::span<const double> want);

}  // namespace hkt::testing
