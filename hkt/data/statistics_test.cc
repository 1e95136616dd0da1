#include "hkt/data/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hkt/base/error.h"

namespace hkt::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(StatisticsTest, Lengths) {
  Dataset dataset;
  for (size_t length : {4, 0, 1, 3, 2}) dataset.Add(std::vector<uint16_t>(length, 1), 0);
  const LengthSummary summary = SummariseLengths(dataset);
  EXPECT_THAT((std::vector{summary.min, summary.q25, summary.median, summary.q75, summary.max,
                           summary.empty}),
              ElementsAre(0, 1, 2, 3, 4, 1));
  EXPECT_DOUBLE_EQ(summary.mean, 2);
  EXPECT_EQ(SummariseLengths({}).max, 0);
}

TEST(StatisticsTest, Repeats) {
  Dataset a, b;
  for (uint16_t token : std::vector<uint16_t>{1, 2, 1, 3, 1})
    a.Add(std::vector<uint16_t>{token, 9}, 0);
  for (uint16_t token : std::vector<uint16_t>{3, 4, 3}) b.Add(std::vector<uint16_t>{token, 9}, 0);
  b.Add(std::vector<uint16_t>{1}, 0);  // a beginning is no repeat
  EXPECT_EQ(CountRepeats(a, a), 2);
  EXPECT_EQ(CountRepeats(b, a), 2);
}

TEST(StatisticsTest, LabelShares) {
  Dataset dataset;
  for (int32_t label : {1, 1, 2, 1}) dataset.Add({}, label);
  EXPECT_THAT(LabelShares(dataset, 4), ElementsAre(0, 0.75, 0.25, 0));
}

class VerifyTest : public testing::Test {
 protected:
  VerifyTest() {
    for (Split split : kAllSplits) splits_[split];
    splits_[Split::kTrain].Add(listops::Parse("[MAX 1 2 ]"), 2);
    splits_[Split::kTrain].Add(listops::Parse("[MAX 1 3 ]"), 3);
    splits_[Split::kTest].Add(listops::Parse("[MAX 1 4 ]"), 4);
  }

  std::string Problem() {
    try {
      listops::Verify(preset_, splits_);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  listops::Preset preset_ = {.name = "p",
                             .operators_in_4 = 2,
                             .max_depth = 2,
                             .max_args = 5,
                             .min_tokens = 4,
                             .max_tokens = 5,
                             .train = 2,
                             .validation = 0,
                             .test = 1};
  std::map<Split, Dataset> splits_;
};

TEST_F(VerifyTest, Good) { EXPECT_EQ(Problem(), ""); }

TEST_F(VerifyTest, WrongLabel) {
  splits_[Split::kTrain].labels[1] = 4;
  EXPECT_THAT(Problem(), HasSubstr("train example 2: the label is 4, the expression's value 3"));
}

TEST_F(VerifyTest, TheSameExpressionInTwoSplits) {
  splits_[Split::kTest] = {};
  splits_[Split::kTest].Add(listops::Parse("[MAX 1 3 ]"), 3);
  EXPECT_THAT(Problem(), HasSubstr("test example 1 is the same expression as train example 2"));
}

TEST_F(VerifyTest, NumberLengthDepth) {
  preset_.test = 2;
  EXPECT_THAT(Problem(), HasSubstr("test holds 1 examples"));
  preset_.test = 1;
  preset_.min_tokens = 5;
  EXPECT_THAT(Problem(), HasSubstr("has 4 tokens"));
  preset_.min_tokens = 4;
  preset_.max_depth = 1;
  EXPECT_THAT(Problem(), HasSubstr("has depth 2"));
}

TEST_F(VerifyTest, CutExpression) {
  splits_[Split::kTest].tokens.pop_back();
  splits_[Split::kTest].offsets.back() -= 1;
  EXPECT_THAT(Problem(), HasSubstr("test example 1: the expression ends with 1"));
}

}  // namespace
}  // namespace hkt::data
