#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Statistics over seeds and over test examples. Everything in double; no figure is made up where
// there are too few numbers: std::nullopt, which the page shows as a dash.

namespace hkt::report {

// Mean and sample standard deviation (n - 1 in the denominator; none for fewer than two numbers).
struct Summary {
  int64_t n = 0;
  double mean = 0;
  std::optional<double> deviation;
};
// Throws Error for no numbers and for one that is not finite.
Summary Summarise(std::span<const double> values);

// What an interval says: all of it above 0, all of it below 0, or neither.
enum class Verdict { kAbove, kBelow, kOpen };
std::string_view Name(Verdict verdict);  // "above 0", "below 0", "open"

// Mean of differences d_1 … d_n with the 95 % interval mean -+ t sd / sqrt(n), t the 0.975 quantile
// of Student's distribution with n - 1 degrees of freedom. One number has no interval, and is open.
struct Interval {
  Summary summary;
  std::optional<double> low, high;
  Verdict verdict = Verdict::kOpen;
};
Interval TInterval(std::span<const double> differences);

// x with P(t <= x) = probability, 0 < probability < 1, for degrees of freedom >= 1.
double StudentQuantile(double degrees, double probability);

// McNemar's test of two classifiers on the same examples: `only_first` examples that the first
// alone got right, `only_second` the other way round; under the null hypothesis either is
// Binomial(only_first + only_second, 1/2). Two-sided p: exact below 25 disagreements, else
// chi-squared with one degree of freedom and the continuity correction,
// (|only_first - only_second| - 1)^2 / (only_first + only_second). No disagreement: p = 1.
struct McNemar {
  int64_t only_first = 0, only_second = 0;
  double p = 1;
  bool exact = true;
};
constexpr int64_t kExactBelow = 25;
McNemar McNemarTest(int64_t only_first, int64_t only_second);

// The set bits of a base64 bit set, one bit an example, little end first. Throws Error, beginning
// with `what`, when it is no base64 or does not hold exactly `examples` bits.
std::vector<uint8_t> DecodeBits(std::string_view base64, int64_t examples, const std::string& what);

// Counts of the two bit sets' disagreements. Throws Error when they differ in length.
McNemar McNemarTest(std::span<const uint8_t> first, std::span<const uint8_t> second,
                    int64_t examples);

}  // namespace hkt::report
