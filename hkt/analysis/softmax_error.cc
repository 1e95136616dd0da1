#include "hkt/analysis/softmax_error.h"

#include <cmath>

namespace hkt::analysis {

double KlBoundOfRange(double range) { return range * range / 8; }

double KlBoundOfVariance(double variance, double range) {
  // Below 1e-4 the quotient's own rounding is larger than B/6 + …, the rest of its series.
  if (range < 1e-4) return variance * (0.5 + range / 6);
  return variance * (std::expm1(range) - range) / (range * range);
}

double L1BoundOfRange(double range) { return range / 2; }

}  // namespace hkt::analysis
