// The comparer is tested first: what it must reject is what broken kernels have shown.

#include "hkt/testing/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "hkt/testing/error_bound.h"

namespace hkt::testing {
namespace {

using ::testing::HasSubstr;

const std::vector<double> kWant = {1.0, -2.0, 3.0, 0.0};

std::vector<double> With(size_t i, double value) {
  std::vector<double> got = kWant;
  got[i] = value;
  return got;
}

TEST(CompareTest, AcceptsWhatLiesWithinTheBound) {
  EXPECT_TRUE(Compare(kWant, kWant, 0));
  EXPECT_TRUE(Compare(With(1, -2.001), kWant, 0.0011));
  EXPECT_TRUE(Compare({}, {}, 0));
  const std::vector<double> zeros(3, 0.0);
  EXPECT_TRUE(Compare(zeros, zeros, 0));
}

TEST(CompareTest, RejectsEveryKindOfWrongResult) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(Compare(With(2, kNan), kWant, 1e9)) << "NaN";
  EXPECT_FALSE(Compare(kWant, With(2, kNan), 1e9)) << "NaN in the reference";
  EXPECT_FALSE(Compare(With(0, INFINITY), kWant, 1e9)) << "infinity";
  EXPECT_FALSE(Compare(With(0, -1.0), kWant, 1.5)) << "sign flip";
  EXPECT_FALSE(Compare(With(3, 0.02), kWant, 0.01)) << "one wrong element";
  EXPECT_FALSE(Compare(std::vector<double>{1.0, -2.0, 3.0}, kWant, 1e9)) << "size";
  EXPECT_FALSE(Compare(std::vector<double>(4, 0.0), kWant, 10)) << "all zero within a wide bound";
  EXPECT_FALSE(Compare(kWant, kWant, kNan)) << "no bound";
  EXPECT_FALSE(Compare(kWant, kWant, INFINITY)) << "no bound";
}

TEST(CompareTest, EveryElementHasItsOwnBound) {
  const std::vector<double> bounds = {0.1, 1e-3, 1e-6, 0.5};
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(Compare(kWant, kWant, bounds));
  EXPECT_TRUE(Compare(With(0, 1.09), kWant, bounds));
  EXPECT_FALSE(Compare(With(2, 3.00001), kWant, bounds)) << "outside its own, inside of others";
  EXPECT_FALSE(Compare(With(2, kNan), kWant, bounds)) << "NaN";
  EXPECT_FALSE(Compare(kWant, With(2, kNan), bounds)) << "NaN in the reference";
  EXPECT_FALSE(Compare(With(0, INFINITY), kWant, bounds)) << "infinity";
  EXPECT_FALSE(Compare(std::vector<double>(3), std::vector<double>(3), bounds)) << "size";
  EXPECT_FALSE(Compare(std::vector<double>(4), kWant, std::vector<double>(4, 10.0))) << "all zero";
  // A reference of zeros up to its own rounding may be met by exact zeros.
  EXPECT_TRUE(
      Compare(std::vector<double>(2), std::vector<double>{1e-17, 0}, std::vector<double>(2, 1e-6)));
  EXPECT_FALSE(Compare(kWant, kWant, std::vector<double>{1, 1, 1, kNan})) << "no bound";
  EXPECT_FALSE(Compare(kWant, kWant, std::vector<double>{1, 1, 1, INFINITY})) << "no bound";
  EXPECT_THAT(Compare(With(2, 5.0), kWant, bounds).message,
              HasSubstr("1 of 4 elements differ by more than their bound; worst at 2: got 5, want "
                        "3, bound 1e-06"));
}

TEST(CompareTest, SaysWhere) {
  const Comparison result = Compare(With(2, 5.0), kWant, 0.5);
  EXPECT_THAT(result.message,
              HasSubstr("1 of 4 elements differ by more than 0.5; worst at 2: got 5, want 3"));
  EXPECT_EQ(result.worst, 2.0);
}

TEST(CompareTest, BitsSeeWhatEqualityDoesNot) {
  EXPECT_TRUE(CompareBits(kWant, kWant));
  EXPECT_FALSE(CompareBits(With(3, -0.0), kWant));
  EXPECT_FALSE(CompareBits(With(0, std::nextafter(1.0, 2.0)), kWant));
  EXPECT_FALSE(CompareBits(std::vector<double>{}, kWant));
}

TEST(ErrorBoundTest, AnInnerProductStaysBelowIt) {
  for (int n : {1, 7, 64, 1000}) {
    float sum = 0;
    double exact = 0;
    for (int i = 0; i < n; ++i) {
      const float a = std::sin(static_cast<float>(i)), b = std::cos(static_cast<float>(3 * i));
      sum += a * b;
      exact += static_cast<double>(a) * b;
    }
    EXPECT_LE(std::abs(sum - exact), InnerProductBound(UnitRoundoff(24), n, 1, 1)) << n;
  }
}

}  // namespace
}  // namespace hkt::testing
