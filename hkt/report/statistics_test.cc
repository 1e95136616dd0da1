#include "hkt/report/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hkt/base/error.h"
#include "hkt/report/base64.h"

namespace hkt::report {
namespace {

// Quantiles agree with the other library's to rounding of an iterative inverse.
constexpr double kRounding = 1e-12;

// scipy 1.17: stats.t.ppf(p, df)
TEST(StudentQuantile, KnownValues) {
  EXPECT_NEAR(StudentQuantile(1, 0.975), 12.706204736174694, 12.7 * kRounding);
  EXPECT_NEAR(StudentQuantile(2, 0.975), 4.302652729749462, 4.3 * kRounding);
  EXPECT_NEAR(StudentQuantile(4, 0.975), 2.7764451051977934, 2.8 * kRounding);
  EXPECT_NEAR(StudentQuantile(1000, 0.975), 1.9623390808264083, 2 * kRounding);
  EXPECT_NEAR(StudentQuantile(3.5, 0.01), -4.0607113593000825, 4.1 * kRounding);
  EXPECT_NEAR(StudentQuantile(2, 0.5), 0, kRounding);
  EXPECT_THROW(StudentQuantile(0, 0.975), Error);
  EXPECT_THROW(StudentQuantile(2, 1), Error);
}

TEST(Summarise, MeanAndSampleDeviation) {
  const double values[] = {1.2, 0.7, 2.1};
  const Summary summary = Summarise(values);
  EXPECT_EQ(summary.n, 3);
  EXPECT_NEAR(summary.mean, 4.0 / 3, kRounding);
  EXPECT_NEAR(summary.deviation.value(), 0.7094598884597588, kRounding);  // numpy std(ddof=1)
  const double one[] = {5};
  EXPECT_FALSE(Summarise(one).deviation.has_value());
  EXPECT_THROW(Summarise({}), Error);
  const double bad[] = {1, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_THROW(Summarise(bad), Error);
}

// scipy: stats.ttest_1samp(d, 0).confidence_interval(0.95)
TEST(TInterval, KnownIntervalsAndVerdicts) {
  const double open[] = {1.2, 0.7, 2.1};
  Interval interval = TInterval(open);
  EXPECT_NEAR(interval.low.value(), -0.42906273056373645, 10 * kRounding);
  EXPECT_NEAR(interval.high.value(), 3.0957293972304027, 10 * kRounding);
  EXPECT_EQ(Name(interval.verdict), "open");
  double above[] = {4.1, 4.9, 5.3, 4.4, 4.6};
  interval = TInterval(above);
  EXPECT_NEAR(interval.low.value(), 4.086948187172634, 10 * kRounding);
  EXPECT_NEAR(interval.high.value(), 5.233051812827368, 10 * kRounding);
  EXPECT_EQ(Name(interval.verdict), "above 0");
  for (double& value : above) value = -value;
  EXPECT_EQ(Name(TInterval(above).verdict), "below 0");
}

TEST(TInterval, OneSeedIsOpenWhateverItSays) {
  const double one[] = {40};
  const Interval interval = TInterval(one);
  EXPECT_FALSE(interval.low.has_value());
  EXPECT_EQ(interval.verdict, Verdict::kOpen);
}

TEST(TInterval, EqualDifferencesHaveAnIntervalOfWidthZero) {
  const double same[] = {0, 0, 0};
  EXPECT_EQ(TInterval(same).verdict, Verdict::kOpen);
  const double same_above[] = {0.5, 0.5};
  EXPECT_EQ(TInterval(same_above).verdict, Verdict::kAbove);
}

// scipy: stats.binomtest(k, n).pvalue; stats.chi2.sf((abs(b - c) - 1)**2 / (b + c), 1)
TEST(McNemar, KnownValues) {
  EXPECT_NEAR(McNemarTest(3, 7).p, 0.34375, kRounding);
  EXPECT_NEAR(McNemarTest(17, 7).p, 0.06391465663909912, kRounding);
  EXPECT_NEAR(McNemarTest(0, 9).p, 0.00390625, kRounding);
  EXPECT_EQ(McNemarTest(12, 12).p, 1);
  EXPECT_TRUE(McNemarTest(12, 12).exact);
  EXPECT_FALSE(McNemarTest(10, 15).exact);
  EXPECT_NEAR(McNemarTest(10, 15).p, 0.4237107971667936, kRounding);
  EXPECT_NEAR(McNemarTest(180, 120).p, 0.000658337169557234, kRounding);
  EXPECT_NEAR(McNemarTest(1830, 1702).p, 0.03260245374341064, kRounding);
  EXPECT_NEAR(McNemarTest(0, 40).p, 6.984393061522137e-10, 1e-9 * kRounding);
  EXPECT_NEAR(McNemarTest(13, 12).p, 1, kRounding);  // the correction takes the one away
  EXPECT_EQ(McNemarTest(0, 0).p, 1);
}

TEST(McNemar, CountsBits) {
  // Examples 0 … 9: the first is right on 0, 1, 2, 9, the second on 1, 8.
  const std::vector<uint8_t> first = {0b0000'0111, 0b0000'0010};
  const std::vector<uint8_t> second = {0b0000'0010, 0b0000'0001};
  const McNemar test = McNemarTest(first, second, 10);
  EXPECT_EQ(test.only_first, 3);
  EXPECT_EQ(test.only_second, 1);
  EXPECT_THROW(McNemarTest(first, second, 17), Error);
}

TEST(Base64, RoundTripAndKnownText) {
  const std::string_view text = "foobar";  // RFC 4648, section 10
  const char* encoded[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (size_t n = 0; n <= text.size(); ++n) {
    const std::vector<uint8_t> bytes(text.begin(), text.begin() + static_cast<ptrdiff_t>(n));
    EXPECT_EQ(EncodeBase64(bytes), encoded[n]);
    EXPECT_EQ(DecodeBase64(encoded[n], "x"), bytes);
  }
  std::vector<uint8_t> all(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
  EXPECT_EQ(DecodeBase64(EncodeBase64(all), "x"), all);
  for (const char* wrong : {"Zg=", "Z===", "Zg==Zg==", "Zg=v", "Zm9\n", "Zm-_"})
    EXPECT_THROW(DecodeBase64(wrong, "x"), Error) << wrong;
}

TEST(DecodeBits, HoldsOneBitAnExample) {
  EXPECT_EQ(DecodeBits(EncodeBase64(std::vector<uint8_t>{0xff, 0x03}), 10, "x").size(), 2U);
  EXPECT_THROW(DecodeBits(EncodeBase64(std::vector<uint8_t>{0xff, 0x07}), 10, "x"), Error);
  EXPECT_THROW(DecodeBits(EncodeBase64(std::vector<uint8_t>{0xff}), 10, "x"), Error);
}

}  // namespace
}  // namespace hkt::report
