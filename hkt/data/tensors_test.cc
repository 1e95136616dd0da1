#include "hkt/data/tensors.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

namespace hkt::data {
namespace {

Dataset ThreeSequences() {
  Dataset dataset;
  dataset.Add(std::vector<uint16_t>{5, 6, 7}, 1);
  dataset.Add(std::vector<uint16_t>{}, 0);
  dataset.Add(std::vector<uint16_t>{8, 9, 256}, 2);
  return dataset;
}

TEST(TensorsTest, PaddedBatchHasLengths) {
  const std::vector<int64_t> indices = {1, 2};
  const TensorBatch batch = ToTensors(Gather(ThreeSequences(), indices));
  EXPECT_EQ(batch.ids.sizes(), (at::IntArrayRef{2, 3}));
  EXPECT_EQ(batch.ids.scalar_type(), at::kLong);
  EXPECT_TRUE(at::equal(batch.ids.flatten(), at::tensor({0, 0, 0, 8, 9, 256}, at::kLong)));
  EXPECT_TRUE(at::equal(batch.labels, at::tensor({0, 2}, at::kLong)));
  ASSERT_TRUE(batch.lengths.has_value());
  EXPECT_TRUE(at::equal(*batch.lengths, at::tensor({0, 3}, at::kLong)));
  EXPECT_EQ(batch.indices, indices);
}

TEST(TensorsTest, NothingPaddedNoLengths) {
  const std::vector<int64_t> indices = {0, 2};
  EXPECT_FALSE(ToTensors(Gather(ThreeSequences(), indices)).lengths.has_value());
}

TEST(TensorsTest, ChannelsAreTheLastDimension) {
  Dataset dataset;
  dataset.channels = 3;
  dataset.Add(std::vector<uint16_t>{1, 2, 3, 4, 5, 6}, 0);
  dataset.Add(std::vector<uint16_t>{7, 8, 9}, 1);
  const std::vector<int64_t> indices = {1, 0};
  const TensorBatch batch = ToTensors(Gather(dataset, indices));
  EXPECT_TRUE(at::equal(
      batch.ids, at::tensor({7, 8, 9, 0, 0, 0, 1, 2, 3, 4, 5, 6}, at::kLong).reshape({2, 2, 3})));
  EXPECT_TRUE(at::equal(*batch.lengths, at::tensor({1, 2}, at::kLong)));
}

TEST(TensorsTest, OnlyEmptySequences) {
  const std::vector<int64_t> indices = {1};
  const TensorBatch batch = ToTensors(Gather(ThreeSequences(), indices));
  EXPECT_EQ(batch.ids.sizes(), (at::IntArrayRef{1, 0}));
  EXPECT_FALSE(batch.lengths.has_value());
}

TEST(TensorsTest, TensorsOutliveTheBatch) {
  at::Tensor ids;
  {
    const std::vector<int64_t> indices = {0};
    ids = ToTensors(Gather(ThreeSequences(), indices)).ids.slice(1, 1);
  }
  EXPECT_TRUE(at::equal(ids.flatten(), at::tensor({6, 7}, at::kLong)));
}

}  // namespace
}  // namespace hkt::data
