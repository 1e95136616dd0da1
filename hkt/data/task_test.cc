#include "hkt/data/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hkt/base/error.h"

namespace hkt::data {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

DataConfig ListOps(const char* preset) {
  DataConfig config;
  config.preset = preset;
  return config;
}

DataConfig Imdb() {
  DataConfig config;
  config.task = "imdb";
  return config;
}

TEST(TaskTest, DescribeNeedsNoData) {
  EXPECT_EQ(Describe(ListOps("tiny")).seq_len, 96);
  EXPECT_EQ(Describe(ListOps("short")).seq_len, 512);
  EXPECT_EQ(Describe(ListOps("lra")).seq_len, 1999);
  EXPECT_EQ(Describe(ListOps("tiny")).vocabulary, 16);
  EXPECT_EQ(Describe(ListOps("tiny")).classes.size(), 10u);
  EXPECT_EQ(Describe(Imdb()).vocabulary, 257);
  EXPECT_EQ(Describe(Imdb()).seq_len, 1024);
  EXPECT_THAT(Describe(Imdb()).classes, ElementsAre("neg", "pos"));
  DataConfig config;
  config.task = "cifar10";
  EXPECT_EQ(Describe(config).vocabulary, 257);
  EXPECT_EQ(Describe(config).channels, 1);
  config.rgb = true;
  EXPECT_EQ(Describe(config).channels, 3);
  EXPECT_EQ(Describe(config).seq_len, 1024);
  EXPECT_EQ(Describe(config).classes.size(), 10u);
  config.rgb = false;
  config.task = "text";
  EXPECT_EQ(Describe(config).vocabulary, 257);
  EXPECT_EQ(Describe(config).seq_len, 1024);
  EXPECT_TRUE(Describe(config).classes.empty()) << "its data decide";
}

TEST(TaskTest, WhatATaskDoesNotHave) {
  DataConfig config;
  config.task = "cifar10";
  config.seq_len = 512;
  EXPECT_THROW(Describe(config), UsageError);
  config.seq_len = 1024;
  EXPECT_EQ(Describe(config).seq_len, 1024);
  EXPECT_THROW(Load(config, {Split::kTrain}), UsageError) << "no --data";
  EXPECT_THROW(Encode(config, "text", nullptr), Error);
  config.task = "imdb";
  config.rgb = true;
  EXPECT_THROW(Describe(config), UsageError);
  Config whole;
  whole.train.augment = true;
  EXPECT_THROW(Resolve(whole), UsageError);
  whole.data.task = "cifar10";
  EXPECT_NO_THROW(Resolve(whole));
}

TEST(TaskTest, EncodeImagesDoesWhatLoadDoes) {
  DataConfig config;
  EXPECT_THROW(EncodeImages(config, std::string(3072, 'x'), "x"), Error);
  config.task = "cifar10";
  EXPECT_EQ(EncodeImages(config, std::string(3072, '\0'), "x").sequence(0)[5], 1);
  config.rgb = true;
  EXPECT_EQ(EncodeImages(config, std::string(3072, '\0'), "x").channels, 3);
}

TEST(TaskTest, UnknownNamesAreUsageErrors) {
  EXPECT_THROW(Describe(ListOps("long")), UsageError);
  DataConfig config;
  config.task = "cifar";
  EXPECT_THROW(Describe(config), UsageError);
  config = ListOps("tiny");
  config.seq_len = 0;
  EXPECT_THROW(Describe(config), UsageError);
  EXPECT_THROW(ParseSplit("val"), UsageError);
  EXPECT_THROW(Load(Imdb(), {Split::kTrain}), UsageError) << "no --data";
}

TEST(TaskTest, SplitNames) {
  for (Split split : kAllSplits) EXPECT_EQ(ParseSplit(SplitName(split)), split);
}

TEST(TaskTest, OnlyTheSplitsAskedFor) {
  const auto splits = Load(ListOps("tiny"), {Split::kTrain, Split::kValidation});
  EXPECT_EQ(splits.size(), 2u);
  EXPECT_EQ(splits.count(Split::kTest), 0u);
  EXPECT_EQ(splits.at(Split::kTrain).size(), 20000);
}

TEST(TaskTest, LongerThanSeqLenIsCutAndCounted) {
  DataConfig config = ListOps("tiny");
  const Dataset whole = Load(config, {Split::kTest}).at(Split::kTest);
  config.seq_len = 20;
  const Dataset cut = Load(config, {Split::kTest}).at(Split::kTest);
  int64_t longer = 0;
  ASSERT_EQ(cut.size(), whole.size());
  for (int64_t i = 0; i < whole.size(); ++i) {
    longer += whole.length(i) > 20;
    ASSERT_EQ(cut.length(i), std::min<int64_t>(whole.length(i), 20));
    ASSERT_TRUE(
        std::equal(cut.sequence(i).begin(), cut.sequence(i).end(), whole.sequence(i).begin()));
  }
  EXPECT_EQ(whole.truncated, 0);
  EXPECT_GT(longer, 0);
  EXPECT_EQ(cut.truncated, longer);
  EXPECT_EQ(cut.labels, whole.labels);
}

TEST(TaskTest, EncodeDoesWhatLoadDoes) {
  bool truncated = true;
  EXPECT_THAT(Encode(ListOps("tiny"), "[MAX 2 9 ]", &truncated), ElementsAre(12, 3, 10, 15));
  EXPECT_FALSE(truncated);
  DataConfig config = ListOps("tiny");
  config.seq_len = 2;
  EXPECT_THAT(Encode(config, "[MAX 2 9 ]", &truncated), ElementsAre(12, 3));
  EXPECT_TRUE(truncated);
  EXPECT_THROW(Encode(config, "[MAX 2 9", nullptr), Error);
  EXPECT_THAT(Encode(Imdb(), "a\n", &truncated), ElementsAre(98, 11));
  EXPECT_FALSE(truncated);
}

}  // namespace
}  // namespace hkt::data
