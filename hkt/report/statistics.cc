#include "hkt/report/statistics.h"

#include <algorithm>
#include <bit>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "hkt/base/error.h"
#include "hkt/report/base64.h"

namespace hkt::report {

Summary Summarise(std::span<const double> values) {
  Check(!values.empty(), "no numbers to summarise");
  double sum = 0;
  for (const double value : values) {
    Check(std::isfinite(value), "cannot summarise a number that is not finite");
    sum += value;
  }
  const auto n = static_cast<double>(values.size());
  Summary result{.n = static_cast<int64_t>(values.size()), .mean = sum / n, .deviation = {}};
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.deviation = std::sqrt(squares / (n - 1));
  return result;
}

std::string_view Name(Verdict verdict) {
  if (verdict == Verdict::kAbove) return "above 0";
  return verdict == Verdict::kBelow ? "below 0" : "open";
}

double StudentQuantile(double degrees, double probability) {
  Check(degrees >= 1 && probability > 0 && probability < 1, "no Student quantile for ", degrees,
        " degrees of freedom at ", probability);
  return boost::math::quantile(boost::math::students_t(degrees), probability);
}

Interval TInterval(std::span<const double> differences) {
  Interval result{.summary = Summarise(differences), .low = {}, .high = {}};
  if (!result.summary.deviation) return result;
  const auto n = static_cast<double>(result.summary.n);
  const double half = StudentQuantile(n - 1, 0.975) * *result.summary.deviation / std::sqrt(n);
  result.low = result.summary.mean - half;
  result.high = result.summary.mean + half;
  if (*result.low > 0) result.verdict = Verdict::kAbove;
  if (*result.high < 0) result.verdict = Verdict::kBelow;
  return result;
}

McNemar McNemarTest(int64_t only_first, int64_t only_second) {
  Check(only_first >= 0 && only_second >= 0, "negative number of disagreements");
  const int64_t n = only_first + only_second;
  McNemar result{
      .only_first = only_first, .only_second = only_second, .p = 1, .exact = n < kExactBelow};
  if (n == 0) return result;
  const auto count = static_cast<double>(n);
  if (result.exact) {
    const auto fewer = static_cast<double>(std::min(only_first, only_second));
    result.p = std::min(1.0, 2 * boost::math::cdf(boost::math::binomial(count, 0.5), fewer));
  } else {
    const double distance =
        std::max(0.0, std::abs(static_cast<double>(only_first - only_second)) - 1);
    const double statistic = distance * distance / count;
    result.p = boost::math::cdf(boost::math::complement(boost::math::chi_squared(1), statistic));
  }
  return result;
}

std::vector<uint8_t> DecodeBits(std::string_view base64, int64_t examples,
                                const std::string& what) {
  std::vector<uint8_t> bytes = DecodeBase64(base64, what);
  Check(examples >= 0 && static_cast<int64_t>(bytes.size()) == (examples + 7) / 8, what, ": ",
        bytes.size(), " bytes, must be one bit for each of ", examples, " examples");
  Check(examples % 8 == 0 || bytes.back() >> (examples % 8) == 0, what,
        ": a bit behind the last example is set");
  return bytes;
}

McNemar McNemarTest(std::span<const uint8_t> first, std::span<const uint8_t> second,
                    int64_t examples) {
  Check(first.size() == second.size() && static_cast<int64_t>(first.size()) == (examples + 7) / 8,
        "bit sets of ", first.size(), " and ", second.size(), " bytes for ", examples, " examples");
  int64_t only_first = 0, only_second = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    only_first += std::popcount(static_cast<unsigned>(first[i] & ~second[i]));
    only_second += std::popcount(static_cast<unsigned>(second[i] & ~first[i]));
  }
  return McNemarTest(only_first, only_second);
}

}  // namespace hkt::report
