#include "hkt/report/comparisons.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "hkt/report/base64.h"
#include "hkt/report/statistics.h"

namespace hkt::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kExamples = 10;

// A result that is right on the first `right` of ten examples.
Result Of(int64_t seed, int right) {
  Result result;
  result.seed = seed;
  result.test_examples = kExamples;
  result.test_accuracy = right / static_cast<double>(kExamples);
  const unsigned bits = (1U << right) - 1;
  result.correct = {static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8)};
  return result;
}

class TwoByTwo : public testing::Test {
 protected:
  // Of seeds 1, 2, 3: right answers of MHA, MHA+conv, HKT fusion and HKT.
  void SetUp() override {
    Add("MHA", {3, 4, 3});
    Add("MHA+conv", {5, 5, 5});
    Add("HKT fusion", {4, 6, 4});
    Add("HKT", {9, 8, 8});
  }

  void Add(const std::string& name, const std::vector<int>& right) {
    Row row{.name = "imdb-" + name, .row = name, .seeds = {1, 2, 3}, .results = {}};
    for (size_t i = 0; i < right.size(); ++i) {
      results_.push_back(std::make_unique<Result>(Of(static_cast<int64_t>(i) + 1, right[i])));
      row.results.push_back(results_.back().get());
    }
    rows_.push_back(row);
  }

  Json Effect(const std::string& label) const {
    for (const Json& effect : Effects(rows_)) {
      if (effect["label"] == label) return effect;
    }
    return nullptr;
  }

  std::vector<std::unique_ptr<Result>> results_;
  std::vector<Row> rows_;
};

void ExpectDifferences(const Json& contrast, const std::vector<double>& expected) {
  ASSERT_EQ(contrast["differences"].size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(contrast["differences"][i].get<double>(), expected[i], 1e-12) << contrast["label"];
}

TEST_F(TwoByTwo, EffectsAndInteraction) {
  ExpectDifferences(Effect("hierarchy, without convolution"), {0.1, 0.2, 0.1});
  ExpectDifferences(Effect("hierarchy, with convolution"), {0.4, 0.3, 0.3});
  ExpectDifferences(Effect("hierarchy, mean of the two"), {0.25, 0.25, 0.2});
  ExpectDifferences(Effect("convolution, at one level"), {0.2, 0.1, 0.2});
  ExpectDifferences(Effect("convolution, at three levels"), {0.5, 0.2, 0.4});
  ExpectDifferences(Effect("convolution, mean of the two"), {0.35, 0.15, 0.3});
  ExpectDifferences(Effect("interaction"), {0.3, 0.1, 0.2});
  // scipy: ttest_1samp([0.3, 0.1, 0.2], 0).confidence_interval(0.95)
  EXPECT_NEAR(Effect("interaction")["low"].get<double>(), -0.0484137712, 1e-9);
  EXPECT_NEAR(Effect("interaction")["high"].get<double>(), 0.4484137712, 1e-9);
  EXPECT_EQ(Effect("interaction")["verdict"], "open");
  EXPECT_EQ(Effect("hierarchy, with convolution")["verdict"], "above 0");
}

TEST_F(TwoByTwo, OnlySeedsThatAllRowsHaveCount) {
  rows_[0].results.erase(rows_[0].results.begin() + 1);  // MHA has no seed 2
  const Json interaction = Effect("interaction");
  EXPECT_EQ(interaction["seeds"], Json({1, 3}));
  EXPECT_EQ(interaction["seeds_planned"], 3);
  ExpectDifferences(interaction, {0.3, 0.2});
  rows_[0].results.clear();
  EXPECT_EQ(Effect("interaction")["verdict"], "missing");
  EXPECT_TRUE(Effect("interaction")["mean"].is_null());
  ExpectDifferences(Effect("hierarchy, with convolution"), {0.4, 0.3, 0.3});
  rows_.erase(rows_.begin());  // not planned: its effects are left out
  EXPECT_TRUE(Effect("interaction").is_null());
}

TEST_F(TwoByTwo, ComparisonsHaveTheSignOfHktAndThePublishedGap) {
  const Json comparisons = Comparisons(rows_, "imdb");
  ASSERT_EQ(comparisons.size(), 3U);
  EXPECT_EQ(comparisons[0]["second"], "MHA");
  ExpectDifferences(comparisons[0], {0.6, 0.4, 0.5});
  EXPECT_NEAR(comparisons[0]["published_gap"].get<double>(), 0.0747, 1e-12);
  EXPECT_TRUE(comparisons[1]["published_gap"].is_null());
  const Json test = comparisons[0]["mcnemar"][0];
  EXPECT_EQ(test["only_first"], 6);
  EXPECT_EQ(test["only_second"], 0);
  EXPECT_EQ(test["method"], "exact binomial");
  EXPECT_NEAR(test["p"].get<double>(), 2 * std::pow(0.5, 6), 1e-12);
  EXPECT_TRUE(Comparisons(rows_, "text")[0]["published_gap"].is_null());
}

TEST_F(TwoByTwo, OtherTestExamplesAreRefused) {
  results_[0]->test_examples = 9;
  EXPECT_THROW(Comparisons(rows_, "imdb"), Error);
}

}  // namespace
}  // namespace hkt::report
