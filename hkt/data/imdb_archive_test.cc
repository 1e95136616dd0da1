// The real archive. Needs the environment variable HKT_DATA: a folder that holds aclImdb_v1.tar.gz
// or .tar.xz.

#include <gtest/gtest.h>

#include "hkt/data/archive_test_util.h"
#include "hkt/data/floors.h"
#include "hkt/data/loader.h"
#include "hkt/data/task.h"

namespace hkt::data {
namespace {

TEST(ImdbArchiveTest, SizesLabelsAndFloors) {
  DataConfig config;
  config.task = "imdb";
  config.data = RealArchive("aclImdb_v1");
  if (config.data.empty())
    GTEST_SKIP() << "HKT_DATA is not set: it names the folder of the real aclImdb_v1.tar.xz";

  const auto splits = Load(config, {Split::kTrain, Split::kValidation, Split::kTest});
  const Dataset& train = splits.at(Split::kTrain);
  const Dataset& test = splits.at(Split::kTest);
  EXPECT_EQ(train.size(), 22500);
  EXPECT_EQ(splits.at(Split::kValidation).size(), 2500);
  EXPECT_EQ(test.size(), 25000);
  for (const auto& [split, dataset] : splits) {
    EXPECT_EQ(LabelShares(dataset, 2)[1], 0.5) << SplitName(split);
    for (int64_t i = 0; i < dataset.size(); ++i) ASSERT_LE(dataset.length(i), 1024);
  }
  EXPECT_EQ(train.truncated + splits.at(Split::kValidation).truncated, 11755);
  EXPECT_EQ(test.truncated, 11513);

  // The authors' files are sorted by label: no batch of an epoch may be of one class.
  for (const auto& batch : PlanEpoch(train, 32, 1, 0)) {
    int64_t positive = 0;
    for (int64_t i : batch) positive += train.labels[i];
    EXPECT_TRUE(positive > 0 && positive < static_cast<int64_t>(batch.size()));
  }

  EXPECT_EQ(MajorityAccuracy(train, test, 2), 0.5);
  const double floor = CountRegression(train, 257, 2).Accuracy(test);
  EXPECT_GE(floor, 0.64);
  EXPECT_LE(floor, 0.65);
}

}  // namespace
}  // namespace hkt::data
