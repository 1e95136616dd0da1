#include "hkt/data/listops_ladder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "hkt/base/error.h"

namespace hkt::data::listops {
namespace {

Dataset Expressions(const std::vector<std::string>& texts) {
  Dataset dataset;
  for (const std::string& text : texts) {
    const std::vector<uint16_t> tokens = Parse(text);
    dataset.Add(tokens, Evaluate(tokens));
  }
  return dataset;
}

// The shares of a depth's operator values in closed form at the last depth with operators: the
// arguments are digits.
TEST(LadderTest, ValuesAreThoseOfTheDepth) {
  const Preset& preset = FindPreset("tiny");  // depth 4, 2 ... 5 arguments
  const std::vector<int32_t> values = OperatorValues(preset, 3, 40000, 1);
  const double zeros = static_cast<double>(std::count(values.begin(), values.end(), 0)) / 40000;
  double expected = 0;
  for (int n = 2; n <= 5; ++n) {
    const double some_zero = 1 - std::pow(0.9, n), all_zero = std::pow(0.1, n);
    // The median truncated is 0: by counting all n-tuples of digits.
    int64_t median_zero = 0, tuples = 1;
    for (int i = 0; i < n; ++i) tuples *= 10;
    for (int64_t t = 0; t < tuples; ++t) {
      std::vector<int32_t> digits;
      for (int64_t rest = t, i = 0; i < n; ++i, rest /= 10)
        digits.push_back(static_cast<int32_t>(rest % 10));
      median_zero += Apply(kMed, digits) == 0;
    }
    expected += (some_zero + all_zero +
                 static_cast<double>(median_zero) / static_cast<double>(tuples) + 0.1) /
                16;
  }
  EXPECT_NEAR(zeros, expected, 4 * std::sqrt(expected / 40000));
  EXPECT_THROW(OperatorValues(preset, 4, 1, 1), Error) << "there are digits only";
}

TEST(LadderTest, KnowsWhatItMayKnow) {
  const Preset& preset = FindPreset("tiny");
  const Dataset train =
      Expressions({"[MIN 0 5 ]", "[MIN 0 [MAX 7 1 ] ]", "[MAX 9 1 ]", "5", "5", "5", "5"});
  const Dataset examples = Expressions({
      "[MIN 0 [MAX 7 1 ] ]",  // 0 whatever the inner value
      "[MAX 3 [MIN 9 9 ] ]",  // 9: known from depth 2 on only
      "[MAX 9 [MIN [SM 5 5 ] 3 ] ]",
      "[MIN 8 8 ]",
  });
  const Ladder ladder = ComputeLadder(preset, train, examples, 1);
  ASSERT_EQ(ladder.rungs.size(), 5u);
  EXPECT_EQ(ladder.rungs[0].name, "majority");
  EXPECT_EQ(ladder.rungs[0].accuracy, 0) << "5, as four of seven";
  EXPECT_EQ(ladder.rungs[1].name, "root_operator");
  EXPECT_EQ(ladder.rungs[1].accuracy, 0.75) << "0 for MIN, 9 for MAX";
  EXPECT_EQ(ladder.rungs[1].by_operator[0], 0.5);
  EXPECT_EQ(ladder.rungs[1].by_operator[1], 1);
  EXPECT_EQ(ladder.rungs[2].name, "depth_1");
  EXPECT_EQ(ladder.rungs[2].accuracy, 0.75) << "all but the hidden 9: its mode is another value";
  EXPECT_EQ(ladder.rungs[3].accuracy, 1);
  EXPECT_EQ(ladder.rungs[4].accuracy, 1);
  EXPECT_EQ(ladder.examples, 4);
  EXPECT_EQ(ladder.operators[0], 2);
  EXPECT_EQ(ladder.operators[1], 2);
}

TEST(LadderTest, RisesToAllAndIsTheSameEveryTime) {
  const Preset& preset = FindPreset("tiny");
  auto splits = Generate(preset, 1, {Split::kTest, Split::kValidation});
  const Dataset &train = splits.at(Split::kTest), &examples = splits.at(Split::kValidation);
  const Ladder ladder = ComputeLadder(preset, train, examples, 1);
  for (size_t i = 1; i < ladder.rungs.size(); ++i)
    EXPECT_GT(ladder.rungs[i].accuracy, ladder.rungs[i - 1].accuracy) << ladder.rungs[i].name;
  EXPECT_EQ(ladder.rungs.back().accuracy, 1) << "below the last operator there are digits only";
  const Ladder again = ComputeLadder(preset, train, examples, 1);
  for (size_t i = 0; i < ladder.rungs.size(); ++i)
    EXPECT_EQ(again.rungs[i].accuracy, ladder.rungs[i].accuracy);
}

// The figures that docs/data.md states for `short`, on a part of its test split: three standard
// errors of 1,500 examples.
TEST(LadderTest, FiguresOfShort) {
  const Preset& preset = FindPreset("short");
  auto splits = Generate(preset, 1, {Split::kTest, Split::kValidation});
  Dataset examples;
  const Dataset& test = splits.at(Split::kTest);
  for (int64_t i = 0; i < 1500; ++i) examples.Add(test.sequence(i), test.labels[i]);
  const Ladder ladder = ComputeLadder(preset, splits.at(Split::kValidation), examples, 1);
  const std::vector<double> expected = {0.117, 0.25, 0.38, 0.558, 0.65, 0.754, 1};
  ASSERT_EQ(ladder.rungs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::sqrt(expected[i] * (1 - expected[i]) / 1500);
    EXPECT_NEAR(ladder.rungs[i].accuracy, expected[i], 3 * error + 0.02) << ladder.rungs[i].name;
  }
}

TEST(LadderTest, NothingToClimb) {
  EXPECT_THROW(ComputeLadder(FindPreset("tiny"), Dataset{}, Expressions({"5"}), 1), Error);
  EXPECT_THROW(ComputeLadder(FindPreset("tiny"), Expressions({"5"}), Dataset{}, 1), Error);
  Dataset cut;
  cut.Add(std::vector<uint16_t>{kMin, kDigit}, 0);
  EXPECT_THROW(ComputeLadder(FindPreset("tiny"), Expressions({"5"}), cut, 1), Error);
}

}  // namespace
}  // namespace hkt::data::listops
