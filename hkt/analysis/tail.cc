#include "hkt/analysis/tail.h"

#include <cmath>
#include <limits>

namespace hkt::analysis {

std::vector<double> TailBounds(std::span<const double> terms) {
  std::vector<double> bounds(terms.size() + 1, 0.0);
  double sum = 0;
  for (size_t l = terms.size(); l-- > 0;) {
    sum += terms[l];
    bounds[l] = sum * sum;
  }
  return bounds;
}

double DecayRate(std::span<const double> terms) {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (size_t l = 0; l < terms.size(); ++l) {
    if (!(terms[l] > 0)) continue;
    const double at = static_cast<double>(l), log = std::log(terms[l]);
    n += 1;
    x += at;
    y += log;
    xx += at * at;
    xy += at * log;
  }
  if (n < 2) return std::numeric_limits<double>::quiet_NaN();
  return std::exp((n * xy - x * y) / (n * xx - x * x));
}

}  // namespace hkt::analysis
