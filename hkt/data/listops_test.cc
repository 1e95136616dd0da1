#include "hkt/data/listops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hkt/base/error.h"

namespace hkt::data::listops {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string ProblemOf(std::string_view text) {
  try {
    Parse(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ListOpsTest, ExampleHasNineTokensValueNineAndRoundTrips) {
  const std::string text = "[MAX 2 9 [MIN 4 7 ] 0 ]";
  const std::vector<uint16_t> tokens = Parse(text);
  // Digits are 1 ... 10, MIN MAX MED SM 11 ... 14, the closing bracket 15: brackets are never
  // dropped.
  EXPECT_THAT(tokens, ElementsAre(12, 3, 10, 11, 5, 8, 15, 1, 15));
  EXPECT_EQ(Evaluate(tokens), 9);
  EXPECT_EQ(Text(tokens), text);
}

TEST(ListOpsTest, BlanksDoNotMatter) { EXPECT_EQ(Parse(" [SM  8\t7 ]\r\n"), Parse("[SM 8 7 ]")); }

TEST(ListOpsTest, Values) {
  const auto value = [](std::string_view text) { return Evaluate(Parse(text)); };
  EXPECT_EQ(value("[MED 1 2 ]"), 1) << "1.5, truncated";
  EXPECT_EQ(value("[MED 9 0 2 5 ]"), 3) << "3.5, truncated";
  EXPECT_EQ(value("[MED 9 1 5 ]"), 5);
  EXPECT_EQ(value("[SM 9 9 9 ]"), 7);
  EXPECT_EQ(value("[MIN 3 [SM 5 5 ] 2 ]"), 0);
  EXPECT_EQ(value("[MAX 3 [SM 5 4 ] 2 ]"), 9);
  EXPECT_EQ(value("7"), 7);
}

TEST(ListOpsTest, DepthAndRoot) {
  EXPECT_EQ(Depth(Parse("4")), 1);
  EXPECT_EQ(Depth(Parse("[MAX 1 2 ]")), 2);
  EXPECT_EQ(Depth(Parse("[MAX 1 [MIN 2 [SM 3 4 ] ] [MED 1 1 ] ]")), 4);
  EXPECT_EQ(Depth({}), 0);
  EXPECT_EQ(RootOperator(Parse("[MED 1 [MAX 1 1 ] ]")), "MED");
  EXPECT_EQ(RootOperator(Parse("4")), "none");
  EXPECT_EQ(RootOperator({}), "none");
}

TEST(ListOpsTest, WhatIsNoExpressionSaysWhereAndWhy) {
  EXPECT_THAT(ProblemOf("[MAX 2 x ]"), HasSubstr("token 3 is 'x'"));
  EXPECT_THAT(ProblemOf("[MAX 2 9]"), HasSubstr("token 3 is '9]'"));
  EXPECT_THAT(ProblemOf("[MAX 2 10 ]"), HasSubstr("token 3 is '10'"));
  EXPECT_THAT(ProblemOf("<pad>"), HasSubstr("token 1 is '<pad>'"));
  EXPECT_THAT(ProblemOf("[MAX 2 [MIN 1 2 ]"), HasSubstr("1 of its brackets open"));
  EXPECT_THAT(ProblemOf("]"), HasSubstr("nothing opened"));
  EXPECT_THAT(ProblemOf("[MAX 2 3 ] 4"), HasSubstr("token 5: the expression ends before it"));
  EXPECT_THAT(ProblemOf("[SM ]"), HasSubstr("[SM has no argument"));
  EXPECT_THAT(ProblemOf(" "), HasSubstr("no expression"));
  const uint16_t padded[] = {12, 1, 2, 15, 0};
  EXPECT_THROW(Evaluate(padded), Error);
}

TEST(ListOpsTest, PresetsByName) {
  EXPECT_EQ(FindPreset("lra").max_args, 10);
  EXPECT_THROW(FindPreset("LRA"), UsageError);
}

}  // namespace
}  // namespace hkt::data::listops
