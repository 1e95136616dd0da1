#include "hkt/data/floors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "hkt/base/error.h"
#include "hkt/base/random.h"

namespace hkt::data {
namespace {

TEST(FloorsTest, MajorityIsThatOfTrain) {
  Dataset train, test;
  for (int32_t label : {2, 1, 2, 0}) train.Add({}, label);
  for (int32_t label : {1, 1, 1, 2}) test.Add({}, label);
  EXPECT_DOUBLE_EQ(MajorityAccuracy(train, test, 3), 0.25);
  EXPECT_DOUBLE_EQ(MajorityAccuracy(train, train, 3), 0.5);
  EXPECT_DOUBLE_EQ(MajorityAccuracy(train, Dataset{}, 3), 0.0);
}

// Label c has many of token c + 1, and token 4 always twice.
Dataset Separable(int64_t n, uint64_t seed) {
  Random random({seed});
  Dataset dataset;
  for (int64_t i = 0; i < n; ++i) {
    const int32_t label = static_cast<int32_t>(random.Below(3));
    std::vector<uint16_t> tokens = {4, 4};
    for (uint16_t token = 1; token <= 3; ++token) {
      tokens.insert(tokens.end(), random.Below(4) + (token == label + 1 ? 5 : 0), token);
    }
    random.Shuffle(tokens);
    dataset.Add(tokens, label);
  }
  return dataset;
}

TEST(FloorsTest, CountsThatSeparateAreLearnt) {
  const CountRegression regression(Separable(600, 1), 6, 3);
  EXPECT_GT(regression.Accuracy(Separable(300, 2)), 0.99);
  EXPECT_EQ(regression.Predict(std::vector<uint16_t>{2, 2, 2, 2, 2, 2, 2, 1}), 1);
}

TEST(FloorsTest, OrderOfTokensIsNotSeen) {
  Random random({5});
  Dataset train, test;
  for (Dataset* dataset : {&train, &test}) {
    for (int i = 0; i < 2000; ++i) {
      const int32_t label = static_cast<int32_t>(random.Below(2));
      dataset->Add(label ? std::vector<uint16_t>{1, 2} : std::vector<uint16_t>{2, 1}, label);
    }
  }
  EXPECT_NEAR(CountRegression(train, 3, 2).Accuracy(test), 0.5, 0.04);
}

// One binary count, two classes: the optimum is known in closed form but for the small penalty,
// which is why the tolerance is not that of double.
TEST(FloorsTest, FindsTheOptimumOfATable) {
  Dataset train;
  const auto add = [&](int n, bool token, int32_t label) {
    for (int i = 0; i < n; ++i)
      train.Add(token ? std::vector<uint16_t>{1} : std::vector<uint16_t>{}, label);
  };
  add(30, true, 1);
  add(10, true, 0);
  add(20, false, 1);
  add(40, false, 0);
  const CountRegression regression(train, 2, 2);
  EXPECT_NEAR(regression.Probabilities(std::vector<uint16_t>{1})[1], 0.75, 2e-3);
  EXPECT_NEAR(regression.Probabilities({})[1], 1.0 / 3, 2e-3);
}

TEST(FloorsTest, TheSameEveryTime) {
  const Dataset train = Separable(200, 1);
  const CountRegression a(train, 6, 3), b(train, 6, 3);
  EXPECT_EQ(a.iterations(), b.iterations());
  EXPECT_EQ(a.Probabilities(train.sequence(0)), b.Probabilities(train.sequence(0)));
}

// Values at two positions decide; counts of tokens do not.
TEST(FloorsTest, ValuesAtPositionsAreLearnt) {
  Random random({7});
  Dataset train, test;
  for (Dataset* dataset : {&train, &test}) {
    for (int i = 0; i < 1500; ++i) {
      std::vector<uint16_t> values(40);
      for (uint16_t& value : values) value = static_cast<uint16_t>(random.Below(256));
      dataset->Add(values, values[3] > values[30] ? (values[20] > 128 ? 2 : 1) : 0);
    }
  }
  const ValueRegression regression(train, 3);
  EXPECT_GT(regression.Accuracy(test), 0.9);
  EXPECT_EQ(regression.Accuracy(test), ValueRegression(train, 3).Accuracy(test));
  EXPECT_LE(regression.iterations(), ValueRegression::kIterations);
  EXPECT_EQ(ValueRegression(train, 3, 2).iterations(), 2);
  train.Add(std::vector<uint16_t>{1, 2}, 0);
  EXPECT_THROW(ValueRegression(train, 3), Error) << "another length";
  EXPECT_THROW(regression.Predict(std::vector<uint16_t>{1, 2}), Error);
  EXPECT_THROW(ValueRegression(Dataset{}, 3), Error);
}

TEST(FloorsTest, NothingToLearnFromIsTheMajority) {
  Dataset train;
  for (int32_t label : {1, 1, 0}) train.Add({}, label);
  EXPECT_EQ(CountRegression(train, 6, 2).Predict(std::vector<uint16_t>{3}), 1);
  EXPECT_THROW(CountRegression(Dataset{}, 6, 2), Error);
}

}  // namespace
}  // namespace hkt::data
