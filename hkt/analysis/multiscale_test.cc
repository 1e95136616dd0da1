// The decomposition on the synthetic target against its closed forms (docs/theory.md, 3.6).

#include "hkt/analysis/multiscale.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hkt/analysis/sample_test_util.h"

namespace hkt::analysis {
namespace {

class TwoTokens : public ::testing::TestWithParam<bool> {};

// Geometric decay of the hierarchical term, the quantisation and the optimisation term, for
// Gaussian tokens and for tokens of gamma = 1: of independent tokens kurtosis has no part (3.5c).
TEST_P(TwoTokens, TermsAreTheirClosedForms) {
  data::MultiscaleOptions options;
  if (GetParam()) options.kappa = 48;
  const MultiscaleReport report = MeasureMultiscale(data::MakeMultiscale(options));
  ASSERT_EQ(report.rows.size(), 8u);
  for (const MultiscaleRow& row : report.rows) {
    EXPECT_LE(std::abs(row.gap), 1e-9);
    EXPECT_LE(row.hierarchical, row.tail_bound * (1 + 1e-9) + 1e-18);
    EXPECT_NEAR(row.quantisation, row.quantisation_closed,
                0.05 * std::max(row.quantisation_closed, 0.02));
    EXPECT_NEAR(row.optimisation, row.optimisation_closed, 0.15 * row.optimisation_closed + 1e-3);
    if (row.levels < 8) {
      EXPECT_TRUE(Near(row.hierarchical, row.hierarchical_closed, 0.06)) << row.levels;
    } else {
      EXPECT_LE(row.hierarchical, 1e-18);
    }
  }
  EXPECT_NEAR(report.log_slope, std::log(0.6), 0.05);
  EXPECT_NEAR(report.log_slope, report.log_slope_closed, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Multiscale, TwoTokens, ::testing::Values(false, true));

// One token in place of two: the hierarchical term is multiplied by 1 + gamma, its rate stays.
TEST(Multiscale, KurtosisMultipliesTheTermOfOneToken) {
  double hierarchical[2] = {0, 0};
  for (const bool heavy : {false, true}) {
    data::MultiscaleOptions options{.levels = 6, .same_token = true};
    if (heavy) options.kappa = 48;
    const MultiscaleReport report = MeasureMultiscale(data::MakeMultiscale(options));
    for (size_t row = 0; row < 4; ++row)
      EXPECT_TRUE(Near(report.rows[row].hierarchical, report.rows[row].hierarchical_closed, 0.06));
    EXPECT_NEAR(report.log_slope, report.log_slope_closed, 0.05);
    hierarchical[heavy] = report.rows[0].hierarchical;
  }
  EXPECT_TRUE(Near(hierarchical[1] / hierarchical[0], 2, 0.06));
}

// A target whose levels do not decay has no geometric rate, and the identity holds all the same.
TEST(Multiscale, OtherShapesToo) {
  const MultiscaleReport report = MeasureMultiscale(data::MakeMultiscale(
      {.levels = 4, .stride = 3, .rho = 0.9, .xi = 1, .d = 6, .pairs = 60000}));
  for (const MultiscaleRow& row : report.rows) {
    EXPECT_LE(std::abs(row.gap), 1e-9);
    EXPECT_NEAR(row.quantisation, row.quantisation_closed,
                0.05 * std::max(row.quantisation_closed, 0.02));
  }
  EXPECT_TRUE(Near(report.rows[1].hierarchical, report.rows[1].hierarchical_closed, 0.06));
  const auto json = ToJson(report);
  EXPECT_EQ(json["rows"].size(), 4u);
  EXPECT_EQ(json["rows"][1]["hierarchical"], report.rows[1].hierarchical);
}

}  // namespace
}  // namespace hkt::analysis
