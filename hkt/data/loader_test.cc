#include "hkt/data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "hkt/base/error.h"
#include "hkt/base/random.h"

namespace hkt::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// n sequences of length 0 ... 99 (sequence i holds i + 1 everywhere), sorted by label as the usual
// files are.
Dataset LabelSorted(int64_t n) {
  Random random({11});
  Dataset dataset;
  for (int64_t i = 0; i < n; ++i) {
    const std::vector<uint16_t> tokens(random.Below(100), static_cast<uint16_t>(i + 1));
    dataset.Add(tokens, i < n / 2 ? 0 : 1);
  }
  return dataset;
}

std::vector<int64_t> Sorted(const std::vector<std::vector<int64_t>>& plan) {
  std::vector<int64_t> all;
  for (const auto& batch : plan) all.insert(all.end(), batch.begin(), batch.end());
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<int64_t> Iota(int64_t n) {
  std::vector<int64_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(PlanTest, EverySequenceOnceWithTheLastPartialBatch) {
  for (int64_t n : {1, 3, 4, 5, 10, 257, 1000}) {
    const Dataset dataset = LabelSorted(n);
    for (const auto& plan : {PlanEpoch(dataset, 4, 1, 0), PlanEvaluation(dataset, 4)}) {
      EXPECT_EQ(Sorted(plan), Iota(n));
      ASSERT_EQ(static_cast<int64_t>(plan.size()), (n + 3) / 4);
      for (size_t i = 0; i + 1 < plan.size(); ++i) EXPECT_EQ(plan[i].size(), 4u);
      EXPECT_EQ(static_cast<int64_t>(plan.back().size()), (n - 1) % 4 + 1);
    }
  }
  EXPECT_TRUE(PlanEpoch(Dataset{}, 4, 1, 0).empty());
  EXPECT_THROW(PlanEpoch(Dataset{}, 0, 1, 0), Error);
}

TEST(PlanTest, EvaluationBeginsWithTheLongest) {
  Dataset dataset;
  Random random({8});
  for (int i = 0; i < 100; ++i) {
    dataset.Add(std::vector<uint16_t>(random.Below(50), 1), 0);
  }
  int64_t before = 50;
  for (const auto& batch : PlanEvaluation(dataset, 8)) {
    for (int64_t index : batch) {
      EXPECT_LE(dataset.length(index), before);
      before = dataset.length(index);
    }
  }
}

TEST(PlanTest, PureInSeedAndEpoch) {
  const Dataset dataset = LabelSorted(500);
  EXPECT_EQ(PlanEpoch(dataset, 8, 1, 2), PlanEpoch(dataset, 8, 1, 2));
  EXPECT_NE(PlanEpoch(dataset, 8, 1, 2), PlanEpoch(dataset, 8, 1, 3));
  EXPECT_NE(PlanEpoch(dataset, 8, 1, 2), PlanEpoch(dataset, 8, 2, 2));
}

TEST(PlanTest, LabelSortedDataGiveMixedBatches) {
  const Dataset dataset = LabelSorted(4000);
  int64_t one_class = 0;
  double first_half = 0;
  const auto plan = PlanEpoch(dataset, 16, 1, 0);
  for (size_t i = 0; i < plan.size(); ++i) {
    int64_t ones = 0;
    for (int64_t index : plan[i]) ones += dataset.labels[index];
    one_class += ones == 0 || ones == 16;
    if (i < plan.size() / 2) first_half += static_cast<double>(ones);
  }
  EXPECT_LE(one_class, 1);                         // 2^-15 a batch
  EXPECT_NEAR(first_half / 2000, 0.5, 3 * 0.012);  // and no drift through the epoch
}

TEST(PlanTest, BatchesHoldSimilarLengthsInRandomOrder) {
  const Dataset dataset = LabelSorted(8000);
  const auto plan = PlanEpoch(dataset, 16, 1, 0);
  int64_t padded = 0, rising = 0, last = 0;
  for (const auto& indices : plan) {
    const Batch batch = Gather(dataset, indices);
    padded += batch.B * batch.T;
    rising += batch.T > last;
    last = batch.T;
  }
  // Random batches of 16 would be as long as about the longest of 16: 94 instead of 49.5, that
  // is 1.9 times.
  EXPECT_LT(static_cast<double>(padded) / static_cast<double>(dataset.tokens.size()), 1.15);
  EXPECT_NEAR(static_cast<double>(rising) / static_cast<double>(plan.size()), 0.5, 0.1)
      << "batches come by length";
}

TEST(GatherTest, PadsOnTheRightWithZeros) {
  Dataset dataset;
  dataset.Add(std::vector<uint16_t>{5, 6, 7}, 1);
  dataset.Add(std::vector<uint16_t>{}, 0);
  dataset.Add(std::vector<uint16_t>{8}, 2);
  const std::vector<int64_t> all = {2, 0, 1};
  const Batch batch = Gather(dataset, all);
  EXPECT_EQ(batch.B, 3);
  EXPECT_EQ(batch.T, 3);
  EXPECT_THAT(batch.ids, ElementsAre(8, 0, 0, 5, 6, 7, 0, 0, 0));
  EXPECT_THAT(batch.lengths, ElementsAre(1, 3, 0));
  EXPECT_THAT(batch.labels, ElementsAre(2, 1, 0));
  EXPECT_EQ(batch.indices, all);

  const std::vector<int64_t> empty = {1};
  EXPECT_EQ(Gather(dataset, empty).T, 0);
  EXPECT_EQ(Gather(dataset, {}).B, 0);
  const std::vector<int64_t> wrong = {3};
  EXPECT_THROW(Gather(dataset, wrong), Error);
}

void ExpectSame(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.indices, b.indices);
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_EQ(a.lengths, b.lengths);
  EXPECT_EQ(a.labels, b.labels);
}

TEST(TrainLoaderTest, FollowsThePlansEpochAfterEpoch) {
  const Dataset dataset = LabelSorted(50);
  TrainLoader loader(dataset, 8, 3, {});
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto plan = PlanEpoch(dataset, 8, 3, epoch);
    for (size_t i = 0; i < plan.size(); ++i) {
      EXPECT_EQ(loader.position(), (Position{epoch, static_cast<int64_t>(i)}));
      ExpectSame(loader.Next(), Gather(dataset, plan[i]));
    }
  }
  EXPECT_EQ(loader.position(), (Position{3, 0}));
}

TEST(TrainLoaderTest, ResumesAtEveryPositionWithTheSameBatches) {
  const Dataset dataset = LabelSorted(30);
  constexpr int kBatches = 12;  // of 5 an epoch
  std::vector<Batch> straight;
  std::vector<Position> positions;
  TrainLoader loader(dataset, 7, 1, {});
  for (int i = 0; i < kBatches; ++i) {
    positions.push_back(loader.position());
    straight.push_back(loader.Next());
  }
  for (int start = 0; start < kBatches; ++start) {
    TrainLoader resumed(dataset, 7, 1, positions[start]);
    for (int i = start; i < kBatches; ++i) ExpectSame(resumed.Next(), straight[i]);
  }
}

TEST(TrainLoaderTest, EndOfAnEpochIsTheStartOfTheNext) {
  const Dataset dataset = LabelSorted(16);
  TrainLoader loader(dataset, 8, 1, {.epoch = 4, .batch = 2});
  EXPECT_EQ(loader.position(), (Position{5, 0}));
  ExpectSame(loader.Next(), Gather(dataset, PlanEpoch(dataset, 8, 1, 5)[0]));
}

TEST(TrainLoaderTest, BatchLargerThanTheData) {
  const Dataset dataset = LabelSorted(3);
  TrainLoader loader(dataset, 8, 1, {});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loader.Next().B, 3);
}

TEST(TrainLoaderTest, PositionThatTheDataDoNotHave) {
  const Dataset dataset = LabelSorted(16);
  try {
    TrainLoader loader(dataset, 8, 1, {.epoch = 0, .batch = 3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("batch 3"), HasSubstr("2 batches an epoch"), HasSubstr("--batch")));
  }
  EXPECT_THROW(TrainLoader(dataset, 8, 1, {.epoch = -1, .batch = 0}), Error);
  EXPECT_THROW(TrainLoader(dataset, 0, 1, {}), Error);
  EXPECT_THROW(TrainLoader(Dataset{}, 8, 1, {}), Error);
}

TEST(TrainLoaderTest, StopsCleanlyAtAnyMoment) {
  const Dataset dataset = LabelSorted(40);
  for (int taken = 0; taken < 12; ++taken) {
    TrainLoader loader(dataset, 4, 1, {});
    for (int i = 0; i < taken; ++i) loader.Next();
  }
}

TEST(TrainLoaderTest, WhatFailsInTheThreadIsThrownByNext) {
  Dataset broken = LabelSorted(16);
  broken.tokens.pop_back();
  TrainLoader loader(broken, 4, 1, {});
  EXPECT_THROW(loader.Next(), Error);
  EXPECT_THROW(loader.Next(), Error) << "and again, instead of waiting for ever";
}

}  // namespace
}  // namespace hkt::data
