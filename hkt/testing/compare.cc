#include "hkt/testing/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "hkt/base/error.h"

namespace hkt::testing {
namespace {

Comparison OtherSize(size_t got, size_t want) {
  return {false, INFINITY, Concat("got ", got, " elements, want ", want)};
}

}  // namespace

Comparison Compare(std::span<const double> got, std::span<const double> want, double bound) {
  if (got.size() != want.size()) return OtherSize(got.size(), want.size());
  if (!(bound >= 0) || std::isinf(bound))
    return {false, INFINITY, Concat("bound ", bound, " allows anything")};
  Comparison result{true, 0, ""};
  size_t wrong = 0, where = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - want[i]);
    if (!(difference <= bound)) ++wrong;  // also where it is NaN
    if (std::isnan(difference) || difference > result.worst) {
      where = i;
      result.worst = std::isnan(difference) ? INFINITY : difference;
    }
  }
  const auto zero = [](double x) { return x == 0; };
  if (wrong > 0) {
    result.ok = false;
    result.message = Concat(wrong, " of ", got.size(), " elements differ by more than ", bound,
                            "; worst at ", where, ": got ", got[where], ", want ", want[where]);
  } else if (!got.empty() && std::all_of(got.begin(), got.end(), zero) &&
             !std::all_of(want.begin(), want.end(), zero)) {
    result.ok = false;
    result.message = "every element is 0, but not in the reference: nothing was computed";
  }
  return result;
}

Comparison Compare(std::span<const double> got, std::span<const double> want,
                   std::span<const double> bounds) {
  if (got.size() != want.size()) return OtherSize(got.size(), want.size());
  if (bounds.size() != want.size()) return OtherSize(bounds.size(), want.size());
  Comparison result{true, 0, ""};
  size_t wrong = 0, where = 0;
  double most = 0;  // times its bound
  bool wrote = false, nothing_to_write = true;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!(bounds[i] >= 0) || std::isinf(bounds[i]))
      return {false, INFINITY, Concat("bound ", bounds[i], " at ", i, " allows anything")};
    const double difference = std::abs(got[i] - want[i]);
    const bool ok = difference <= bounds[i];  // not where it is NaN
    const double times = std::isnan(difference) ? INFINITY
                         : difference == 0      ? 0
                                                : difference / bounds[i];
    if (!ok) ++wrong;
    if (times > most) {
      most = times;
      where = i;
    }
    result.worst = std::max(result.worst, std::isnan(difference) ? INFINITY : difference);
    wrote = wrote || got[i] != 0;
    nothing_to_write = nothing_to_write && std::abs(want[i]) <= 0x1p-29 * bounds[i];
  }
  if (wrong > 0) {
    result.ok = false;
    result.message = Concat(wrong, " of ", got.size(), " elements differ by more than their bound",
                            "; worst at ", where, ": got ", got[where], ", want ", want[where],
                            ", bound ", bounds[where]);
  } else if (!wrote && !nothing_to_write) {
    result.ok = false;
    result.message = "every element is 0, but not in the reference: nothing was computed";
  }
  return result;
}

Comparison CompareBits(std::span<const double> got, std::span<const double> want) {
  if (got.size() != want.size()) return OtherSize(got.size(), want.size());
  Comparison result{true, 0, ""};
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::bit_cast<uint64_t>(got[i]) == std::bit_cast<uint64_t>(want[i])) continue;
    if (result.ok)
      result.message = Concat("bits differ first at ", i, ": got ", got[i], ", want ", want[i]);
    result.ok = false;
    result.worst = std::max(result.worst, std::abs(got[i] - want[i]));
  }
  return result;
}

}  // namespace hkt::testing
