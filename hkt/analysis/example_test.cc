#include "hkt/analysis/example.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "hkt/analysis/analysis_test_util.h"
#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/io/safetensors.h"

namespace hkt::analysis {
namespace {

double Item(const at::Tensor& x) { return x.item<double>(); }

TEST(Example, BinsAreTheLeastThatFit) {
  EXPECT_EQ(BinSize(1), 1);
  EXPECT_EQ(BinSize(256), 1);
  EXPECT_EQ(BinSize(257), 2);
  EXPECT_EQ(BinSize(1024), 4);
  EXPECT_EQ(BinSize(1025), 5);
}

// Against the dense matrices, T over several bins, the last of them cut.
TEST(Example, AveragesEqualTheDenseOnes) {
  for (const int64_t T : {1, 40, 601}) {
    for (const bool causal : {true, false}) {
      Layer layer = RandomLayer({.d = 4, .H = 2, .L = 3}, 1);
      layer.causal = causal;
      layer.score_gain = 1.25;
      const SequenceLevels levels = Pyramid(layer, Normal({T, 4}, 2));
      const at::Tensor tokens = at::arange(T, at::kLong);
      at::Tensor scores = FusedScores(layer, levels.x, 0, T);
      if (causal) scores = scores.masked_fill(tokens.unsqueeze(0) > tokens.unsqueeze(1), -INFINITY);
      const at::Tensor dense = at::softmax(scores, 2);
      const at::Tensor got = AveragedAttention(layer, levels.x);
      const int64_t bin = BinSize(T), bins = (T + bin - 1) / bin;
      ASSERT_EQ(got.size(1), bins);
      EXPECT_LE(Item((got.sum(2) - 1).abs().max()), 1e-12);
      for (const int64_t r : {int64_t{0}, bins / 2, bins - 1}) {
        for (const int64_t c : {int64_t{0}, bins / 3, bins - 1}) {
          const at::Tensor block = dense[1]
                                       .slice(0, r * bin, std::min(T, (r + 1) * bin))
                                       .slice(1, c * bin, std::min(T, (c + 1) * bin));
          EXPECT_NEAR(Item(got[1][r][c]), Item(block.sum(1).mean()), 1e-12);
        }
      }
      for (int64_t l = 0; l < layer.L; ++l) {
        const at::Tensor& x = levels.x[static_cast<size_t>(l)];
        const int64_t Tl = x.size(0), size = BinSize(Tl), rows = (Tl + size - 1) / size;
        const at::Tensor whole = LevelScores(layer, l, x)[1] * (Item(layer.weights[1][l]) * 1.25);
        const at::Tensor averaged = AveragedScores(layer, l, levels.x);
        ASSERT_EQ(averaged.size(1), rows);
        for (const auto& [r, c] :
             {std::pair<int64_t, int64_t>{0, 0}, {rows - 1, rows / 2}, {rows - 1, rows - 1}}) {
          double sum = 0, pairs = 0;
          for (int64_t i = r * size; i < std::min(Tl, (r + 1) * size); ++i) {
            for (int64_t j = c * size; j < std::min(Tl, (c + 1) * size); ++j) {
              if (causal && j > i) continue;
              sum += Item(whole[i][j]);
              ++pairs;
            }
          }
          EXPECT_NEAR(Item(averaged[1][r][c]), sum / pairs, 1e-11);
        }
        if (causal && rows > 1) {
          EXPECT_TRUE(std::isnan(Item(averaged[0][0][1])));
        }
      }
    }
  }
}

// The levels' scores add up to the fused ones, which the softmax turns into the attention.
TEST(Example, LevelRowsAddUpToTheFusedScores) {
  constexpr int64_t kT = 19;
  const Layer layer = RandomLayer({.d = 4, .H = 2, .L = 3}, 3);
  const SequenceLevels levels = Pyramid(layer, Normal({kT, 4}, 4));
  const at::Tensor tokens = at::arange(kT, at::kLong);
  at::Tensor sum = at::zeros({2, kT, kT}, at::kDouble);
  for (int64_t l = 0; l < 3; ++l) {
    const at::Tensor cells = tokens.floor_divide(layer.step(l));
    const int64_t Tl = levels.x[static_cast<size_t>(l)].size(0);
    sum = sum + LevelRows(layer, l, levels.x, 0, Tl).index_select(1, cells).index_select(2, cells);
  }
  EXPECT_LE(Distance(sum, FusedScores(layer, levels.x, 0, kT)), 1e-12);
  EXPECT_LE(Distance(AttentionRows(layer, levels.x, 5, 9),
                     AttentionRows(layer, levels.x, 0, kT).slice(1, 5, 9)),
            1e-15);
}

class ExampleOfAModel : public ::testing::Test {
 protected:
  ExampleOfAModel()
      : run_{{Small(), kTask, train::Model(Small(), kTask), "", {}},
             data::Dataset(),
             data::Dataset(),
             false} {
    run_.trained.model.SetTraining(false);
    std::vector<uint16_t> sequence;
    for (int t = 0; t < 11; ++t) sequence.push_back(static_cast<uint16_t>(1 + (5 * t) % 15));
    run_.validation.Add(std::vector<uint16_t>{}, 0);
    run_.validation.Add(sequence, 2);
    folder_ = std::filesystem::path(::testing::TempDir()) / Concat("hkt_example_", ::getpid());
  }
  ~ExampleOfAModel() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  static Config Small() {
    Config config;
    config.model.d_model = 8;
    config.model.layers = 2;
    Resolve(config);
    return config;
  }
  static inline const data::TaskInfo kTask{"listops", 16, 1, 40, {"a", "b", "c"}};
  AnalysisRun run_;
  std::filesystem::path folder_;
};

TEST_F(ExampleOfAModel, IsDescribed) {
  const auto layers = ReadLayers(run_);
  const Json json = ExampleToJson(run_, layers, ExampleOfSplit(run_, 1));
  EXPECT_EQ(json["length"], 11);
  EXPECT_EQ(json["label"], "c");
  EXPECT_EQ(json["tokens"].size(), 11u);
  EXPECT_EQ(json["tokens"][0], "0");
  EXPECT_EQ(json["tokens"][1], "5");
  EXPECT_EQ(json["tokens"][2], "[MIN");
  ASSERT_EQ(json["matrices"].size(), 4u);  // layers times heads
  const Json& matrices = json["matrices"][3];
  EXPECT_EQ(matrices["layer"], 1);
  EXPECT_EQ(matrices["head"], 1);
  ASSERT_EQ(matrices["attention"].size(), 11u);
  double sum = 0;
  for (const Json& value : matrices["attention"][7]) sum += value.get<double>();
  EXPECT_EQ(matrices["attention"][7].size(), 8u);
  EXPECT_NEAR(sum, 1, 8 * 5e-4);  // four significant digits each
  ASSERT_EQ(matrices["levels"].size(), 3u);
  EXPECT_EQ(matrices["levels"][2]["positions"], 3);
  EXPECT_EQ(matrices["levels"][2]["tokens_per_row"], 4);
  EXPECT_EQ(matrices["levels"][2]["scores"][2].size(), 3u);
}

TEST_F(ExampleOfAModel, WrongNumbersAreRefused) {
  EXPECT_THROW(ExampleOfSplit(run_, 2), UsageError);
  EXPECT_THROW(ExampleOfSplit(run_, -1), UsageError);
  EXPECT_THROW(ExampleOfSplit(run_, 0), Error);  // no tokens
}

TEST_F(ExampleOfAModel, IsExported) {
  const auto layers = ReadLayers(run_);
  const auto names = ExportExample(run_, layers, ExampleOfSplit(run_, 1), folder_.string());
  EXPECT_EQ(names.size(), 1u + 4 * (1 + 3));
  for (const std::string& name : names)
    EXPECT_TRUE(std::filesystem::exists(folder_ / name)) << name;
  const io::SafetensorsFile file(folder_ / "example.safetensors");
  EXPECT_EQ(file.at("tokens").shape, (std::vector<int64_t>{11}));
  const io::TensorView& view = file.at("layer.1.head.0.attention");
  ASSERT_EQ(view.shape, (std::vector<int64_t>{11, 11}));
  std::vector<float> values(121);
  std::memcpy(values.data(), view.data.data(), view.data.size());
  const at::Tensor stored = at::from_blob(values.data(), {11, 11}, at::kFloat).to(at::kDouble);
  EXPECT_LE(Item((stored.sum(1) - 1).abs().max()), 1e-6);
  EXPECT_EQ(file.at("layer.0.head.1.level-2").shape, (std::vector<int64_t>{3, 3}));
  // CSV holds the same numbers.
  std::istringstream csv(io::ReadFile(folder_ / "layer-1-head-0-attention.csv"));
  std::string line, cell;
  for (int64_t r = 0; r < 11; ++r) {
    ASSERT_TRUE(std::getline(csv, line));
    std::istringstream cells(line);
    for (int64_t c = 0; c < 11; ++c) {
      ASSERT_TRUE(std::getline(cells, cell, ','));
      EXPECT_NEAR(std::stod(cell), Item(stored[r][c]), 1e-7);
    }
  }
  EXPECT_FALSE(std::getline(csv, line));
}

}  // namespace
}  // namespace hkt::analysis
