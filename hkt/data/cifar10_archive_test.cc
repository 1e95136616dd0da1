// The real archive. Needs the environment variable HKT_DATA: a folder that holds
// cifar-10-binary.tar.gz or .tar.xz.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "hkt/data/archive_test_util.h"
#include "hkt/data/task.h"

namespace hkt::data {
namespace {

TEST(Cifar10ArchiveTest, SizesAndLabels) {
  DataConfig config;
  config.task = "cifar10";
  config.data = RealArchive("cifar-10-binary");
  if (config.data.empty())
    GTEST_SKIP() << "HKT_DATA is not set: it names the folder of the real cifar-10-binary.tar.xz";

  const auto splits = Load(config, {Split::kTrain, Split::kValidation, Split::kTest});
  EXPECT_EQ(splits.at(Split::kTrain).size(), 45000);
  EXPECT_EQ(splits.at(Split::kValidation).size(), 5000);
  EXPECT_EQ(splits.at(Split::kTest).size(), 10000);
  for (const auto& [split, dataset] : splits) {
    EXPECT_THAT(LabelShares(dataset, 10), testing::Each(testing::DoubleEq(0.1)))
        << SplitName(split);
    EXPECT_EQ(dataset.truncated, 0);
    for (int64_t i = 0; i < dataset.size(); ++i) ASSERT_EQ(dataset.length(i), 1024);
    const auto [least, most] = std::minmax_element(dataset.tokens.begin(), dataset.tokens.end());
    EXPECT_EQ(*least, 1) << "black is no padding";
    EXPECT_EQ(*most, 256);
  }
}

}  // namespace
}  // namespace hkt::data
