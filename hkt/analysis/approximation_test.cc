// The subject "approximation" on layers with random weights: identity, order, attention weights,
// fits on training sequences, and what its JSON says.

#include "hkt/analysis/approximation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hkt/analysis/analysis_test_util.h"
#include "hkt/analysis/sample_test_util.h"
#include "hkt/analysis/truncation.h"

namespace hkt::analysis {
namespace {

constexpr double kExact = 1e-9;

std::vector<Layer> TwoLayers(const LayerShape& shape) {
  return {RandomLayer(shape, 1), RandomLayer(shape, 2)};
}

// Visits `held_out` random sequences, and `training` others, of unlike lengths.
Json Analyse(const std::vector<Layer>& layers, ApproximationOptions options, int64_t held_out,
             int64_t training) {
  options.training_sequences = training;
  const auto subject = MakeApproximationSubject(layers, options);
  for (int64_t n = 0; n < training + held_out; ++n) {
    const int64_t T = 20 + 7 * (n % 5);
    SequenceCapture sequence{.index = n, .length = T, .inputs = {}};
    std::vector<SequenceLevels> levels;
    for (size_t i = 0; i < layers.size(); ++i) {
      sequence.inputs.push_back(Normal({T, layers[i].d}, static_cast<uint64_t>(100 * n) + i));
      levels.push_back(Pyramid(layers[i], sequence.inputs.back()));
    }
    if (n < training) {
      subject->VisitTraining(sequence, levels);
    } else {
      subject->Visit(sequence, levels);
    }
  }
  return subject->Finish();
}

TEST(Approximation, IdentityAndOrderOnRandomLayers) {
  for (const bool bias : {false, true}) {
    const Json json = Analyse(TwoLayers({.d = 8, .H = 2, .bias = bias}), {.pairs = 500}, 30, 12);
    EXPECT_EQ(json["identity_holds"], true) << json["identity_gap"];
    EXPECT_EQ(json["bounds_hold"], true);
    EXPECT_EQ(json["too_few"], false);
    EXPECT_EQ(json["sequences"], 30);
    EXPECT_EQ(json["training_sequences"], 12);
    ASSERT_EQ(json["truncations"].size(), 2u * 2 * 3);
    for (const Json& row : json["truncations"]) {
      EXPECT_GT(row["total"].get<double>(), 0);
      ASSERT_EQ(row["fits"].size(), 3u);
      EXPECT_EQ(row["fits"][0]["training_sequences"], 3);
      EXPECT_EQ(row["fits"][2]["training_sequences"], 12);
      for (const Json& fit : row["fits"]) {
        EXPECT_TRUE(Near(fit["sum"], row["optimisation"], 1e-6));
        EXPECT_NEAR(fit["train_excess"].get<double>(), fit["train_distance"].get<double>(),
                    1e-9 * row["total"].get<double>());
      }
    }
    ASSERT_EQ(json["quantisation"].size(), 2u * 2 * 3);
    ASSERT_EQ(json["levels"].size(), 2u * 3);
    for (const Json& row : json["levels"]) {
      EXPECT_NEAR(row["first_sample"].get<double>(),
                  row["cell_mean"].get<double>() + row["offset"].get<double>(), 1e-12);
      EXPECT_EQ(row["first_sample"].get<double>() == 0, row["level"] == 0);
    }
    // Level 0 loses nothing: its columns stand twice in the factor, equal to rounding.
    EXPECT_LE(json["quantisation"][0]["loss"].get<double>(),
              1e-25 * json["quantisation"][0]["second_moment"].get<double>());
    EXPECT_EQ(json["quantisation"][1]["independent"].is_null(), bias);
  }
}

// The finite-sample part falls with the number of training sequences: 1/50 + 1/200 of something
// against 1/200 + 1/200, summed over layers and levels.
TEST(Approximation, MoreTrainingSequencesFitBetter) {
  const Json json = Analyse(TwoLayers({.d = 8}), {.pairs = 500}, 200, 200);
  double quarter = 0, all = 0;
  for (const Json& row : json["truncations"]) {
    quarter += row["fits"][0]["finite_sample"].get<double>();
    all += row["fits"][2]["finite_sample"].get<double>();
  }
  EXPECT_LT(all, 0.8 * quarter);
}

// Under the target's own attention half the error is E KL to leading order, so for small scores;
// and the bounds of 3.7 hold of every row for large ones too.
TEST(Approximation, AttentionWeights) {
  for (const bool small : {true, false}) {
    Layer layer = RandomLayer({.d = 8, .H = 2}, 4);
    layer.score_gain = small ? 0.2 : 5;
    const Json json = Analyse({layer}, {.pairs = 4000, .weights = PairWeights::kAttention}, 30, 4);
    EXPECT_EQ(json["weights"], "attention");
    EXPECT_EQ(json["identity_holds"], true) << json["identity_gap"];
    EXPECT_EQ(json["bounds_hold"], true);
    for (const Json& row : json["truncations"]) {
      const Json& attention = row["attention"];
      EXPECT_EQ(attention["violations"], 0);
      EXPECT_GT(attention["kl"].get<double>(), 0);
      EXPECT_LT(attention["kl"].get<double>(), attention["kl_range_bound"].get<double>());
      const double ratio = attention["kl"].get<double>() / attention["half_total"].get<double>();
      if (small) {
        EXPECT_NEAR(ratio, 1, 0.1);
      }
      if (!small && row["levels"] == 1) {
        EXPECT_GT(std::abs(ratio - 1), 0.1);
      }
    }
  }
}

// Rows of a short sequence are drawn from more often than those of a long one, all of whose rows
// are not even looked at; what attention differs by counts them as the pairs do, 4000 to 3840 here.
TEST(Approximation, RowsCountByTheirDraws) {
  const std::vector<Layer> layers = {RandomLayer({.d = 8}, 4)};
  const std::vector<int64_t> lengths = {20, 400};
  const auto analyse = [&](const std::vector<int64_t>& which) {
    const auto subject = MakeApproximationSubject(
        layers, {.pairs = 4000, .weights = PairWeights::kAttention, .training_sequences = 1});
    for (const int64_t n : which) {
      const at::Tensor input =
          Normal({lengths[static_cast<size_t>(n)], 8}, 7 + static_cast<uint64_t>(n));
      const SequenceCapture sequence{.index = n, .length = input.size(0), .inputs = {input}};
      subject->Visit(sequence, {Pyramid(layers[0], input)});
    }
    return subject->Finish()["truncations"];
  };
  const Json one = analyse({0}), other = analyse({1}), both = analyse({0, 1});
  for (size_t i = 0; i < both.size(); ++i) {
    for (const char* key : {"kl", "kl_range_bound", "kl_variance_bound", "l1", "l1_bound"}) {
      const double a = one[i]["attention"][key].get<double>(),
                   b = other[i]["attention"][key].get<double>();
      const double expected = (20 * 200 * a + 256 * 15 * b) / (20 * 200 + 256 * 15);
      EXPECT_NEAR(both[i]["attention"][key].get<double>(), expected, 1e-12 * expected) << key;
      EXPECT_GT(std::abs(a - b), 1e-3 * expected) << key << " would not tell";
    }
  }
}

// A model of one level is its own target: nothing is lost, and nothing is divided by it.
TEST(Approximation, OneLevelHasNoError) {
  const Json json = Analyse({RandomLayer({.d = 8, .L = 1}, 5)}, {.pairs = 200}, 10, 4);
  EXPECT_EQ(json["identity_holds"], true);
  EXPECT_EQ(json["bounds_hold"], true);
  EXPECT_LE(json["truncations"][0]["total"].get<double>(),
            1e-25 * json["heads"][0]["target"].get<double>());
  EXPECT_TRUE(std::isnan(json["heads"][0]["decay_rate"].get<double>()));
}

TEST(Approximation, BidirectionalPsdAndCutCells) {
  Layer layer = RandomLayer({.d = 8, .L = 4, .stride = 3, .psd = true}, 6);
  layer.causal = false;
  const Json json = Analyse({layer}, {.pairs = 400}, 40, 8);
  EXPECT_EQ(json["identity_holds"], true) << json["identity_gap"];
  EXPECT_EQ(json["bounds_hold"], true);
  EXPECT_EQ(json["truncations"][3]["rank_u"], 4);  // the antisymmetric scores are 0
}

}  // namespace
}  // namespace hkt::analysis
