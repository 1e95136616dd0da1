// The capture against the model itself: pyramid, attention output of a layer and what each layer
// reads, rebuilt by plain formulas in double.

#include "hkt/analysis/capture.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "hkt/analysis/analysis_test_util.h"
#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/nn/hkt_attention.h"
#include "hkt/ops/ops.h"
#include "hkt/testing/error_bound.h"

namespace hkt::analysis {
namespace {

using Find = std::function<at::Tensor(const std::string&)>;

Find In(const train::NamedTensors& parameters, const std::string& prefix) {
  return [&parameters, prefix](const std::string& name) {
    for (const auto& [key, value] : parameters)
      if (key == prefix + name) return value.detach().to(at::kDouble);
    Fail("no parameter ", prefix, name);
  };
}

train::NamedTensors ParametersOf(const torch::nn::Module& module) {
  train::NamedTensors parameters;
  for (const auto& item : module.named_parameters())
    parameters.emplace_back(item.key(), item.value());
  return parameters;
}

// The layer's output for one sequence x [T, d], its scores from the capture.
at::Tensor RebuiltOutput(const Layer& layer, const Find& weight, const at::Tensor& x,
                         int64_t kv_heads) {
  const SequenceLevels levels = Pyramid(layer, x);
  const int64_t T = x.size(0);
  const at::Tensor tokens = at::arange(T, at::kLong);
  at::Tensor scores = FusedScores(layer, levels.x, 0, T);
  if (layer.causal)
    scores = scores.masked_fill(tokens.unsqueeze(0) > tokens.unsqueeze(1), -INFINITY);
  std::optional<at::Tensor> bias;
  if (layer.bias) bias = weight("value.bias");
  const at::Tensor value = at::linear(x, weight("value.weight"), bias)
                               .unflatten(1, {kv_heads, layer.D})
                               .transpose(0, 1)
                               .repeat_interleave(layer.H / kv_heads, 0);
  at::Tensor out = at::matmul(at::softmax(scores, 2), value);
  if (layer.hybrid) {
    out = out * (layer.lambda * layer.beta).sum(1).unsqueeze(1).unsqueeze(2);
    for (int64_t l = 0; l < layer.L; ++l) {
      const std::string conv = Concat("conv.", l, ".");
      const at::Tensor convolved = ops::depthwise_conv(
          levels.x[static_cast<size_t>(l)].unsqueeze(0), weight(conv + "depthwise.weight"),
          weight(conv + "depthwise.bias"))[0];
      const at::Tensor rows =
          at::linear(convolved, weight(conv + "pointwise.weight"), weight(conv + "pointwise.bias"));
      const at::Tensor up = rows.index_select(0, tokens.floor_divide(layer.step(l)))
                                .unflatten(1, {layer.H, layer.D})
                                .transpose(0, 1);
      const at::Tensor share = layer.lambda.select(1, l) * (1 - layer.beta.select(1, l));
      out = out + share.unsqueeze(1).unsqueeze(2) * up;
    }
  }
  return at::linear(out.transpose(0, 1).flatten(1), weight("output.weight"), weight("output.bias"));
}

struct Variant {
  const char* name;
  int64_t levels, stride, kernel_size, kv_heads;
  bool hybrid, psd, causal, bias;
  double gain;
  bool rotary = false;
};

TEST(Capture, RebuildsTheAttentionOutputOfTheModule) {
  constexpr int64_t kT = 23, kD = 8, kHeads = 4;
  for (const Variant& v : {Variant{"default", 3, 2, 3, 4, true, false, true, false, 1},
                           Variant{"one level", 1, 2, 3, 4, false, false, true, false, 1},
                           Variant{"shared keys, gain", 3, 3, 4, 2, true, false, true, false, 1.7},
                           Variant{"biases", 3, 2, 3, 2, true, false, true, true, 1},
                           Variant{"psd", 2, 2, 3, 4, false, true, true, true, 1},
                           Variant{"bidirectional", 4, 4, 3, 4, false, false, false, false, 1},
                           Variant{"rotary", 3, 2, 3, 2, true, false, true, false, 1, true}}) {
    SCOPED_TRACE(v.name);
    nn::HktAttention module(nn::HktAttentionOptions{.d_model = kD,
                                                    .heads = kHeads,
                                                    .kv_heads = v.kv_heads,
                                                    .levels = v.levels,
                                                    .stride = v.stride,
                                                    .kernel_size = v.kernel_size,
                                                    .hybrid = v.hybrid,
                                                    .psd = v.psd,
                                                    .rotary = v.rotary,
                                                    .causal = v.causal,
                                                    .bias = v.bias,
                                                    .score_gain = v.gain});
    module->to(at::kDouble);
    const at::NoGradGuard no_grad;
    const train::NamedTensors parameters = ParametersOf(*module);
    uint64_t seed = 10;
    for (const auto& [name, value] : parameters) value.copy_(Normal(value.sizes(), ++seed) / 2);
    ModelConfig config;
    config.d_model = kD;
    config.heads = kHeads;
    config.kv_heads = v.kv_heads;
    config.levels = v.levels;
    config.stride = v.stride;
    config.kernel_size = v.kernel_size;
    config.hybrid = v.hybrid;
    config.psd = v.psd;
    config.rotary = v.rotary;
    config.bidirectional = !v.causal;
    config.bias = v.bias;
    config.score_gain = v.gain;
    const Layer layer = ReadLayer(parameters, "", config);

    const at::Tensor x = Normal({kT, kD}, 3);
    const at::Tensor want = module->forward(x.unsqueeze(0))[0];
    const at::Tensor got = RebuiltOutput(layer, In(parameters, ""), x, v.kv_heads);
    // Largest magnitudes of this case's operands, and twice the attention's bound for two
    // computations of it; the projections before it and after it add sums of d terms each, whose
    // errors the score bound with d for D covers.
    const SequenceLevels levels = Pyramid(layer, x);
    double q_max = 0, k_max = 0;
    for (int64_t l = 0; l < layer.L; ++l) {
      const at::Tensor rows = Augmented(layer, levels.x[static_cast<size_t>(l)]);
      const LevelWeights& w = layer.levels[static_cast<size_t>(l)];
      q_max = std::max(q_max, at::matmul(rows, w.query).abs().max().item<double>());
      k_max = std::max(k_max, at::matmul(rows, w.key).abs().max().item<double>());
    }
    const double v_max = std::max(1.0, want.abs().max().item<double>()) * kD;
    const testing::AttentionBound bound{.unit = testing::UnitRoundoff(53),
                                        .T = kT,
                                        .D = 4 * kD,
                                        .Dv = kD,
                                        .L = static_cast<double>(v.levels),
                                        .q_max = q_max,
                                        .k_max = k_max,
                                        .v_max = v_max,
                                        .d_out_max = 0,
                                        .scale = layer.scale * v.gain};
    const double limit = 2 * kD * bound.Output();
    EXPECT_LE(Distance(got, want), limit);
    EXPECT_LT(limit, 1e-6);  // else nothing is shown
  }
}

// theory.md 0: x^(l)_tau = z^(l)_{tau s^l}, with x^(l) by the model's own operator.
TEST(Capture, TheUndecimatedPyramidMeetsTheDecimatedOne) {
  for (const int64_t stride : {2, 3, 5}) {
    for (const int64_t T : {1, 2, 7, 29}) {
      const Layer layer = RandomLayer({.d = 5, .L = 4, .stride = stride}, 5);
      const at::Tensor x = Normal({T, 5}, 6);
      const SequenceLevels levels = Pyramid(layer, x);
      at::Tensor decimated = x.unsqueeze(0);
      for (int64_t l = 1; l < 4; ++l) {
        const LevelWeights& w = layer.levels[static_cast<size_t>(l)];
        decimated = ops::downsample(decimated, w.depthwise_weight.unsqueeze(1), w.depthwise_bias,
                                    w.pointwise_weight, w.pointwise_bias, w.norm_weight,
                                    w.norm_bias, stride);
        const at::Tensor& z = levels.z[static_cast<size_t>(l)];
        EXPECT_EQ(z.size(0), T);
        // A norm of 5 numbers divides by a deviation that is small by chance: hence the factor.
        EXPECT_LE(Distance(levels.x[static_cast<size_t>(l)], decimated[0]), 1e-11);
        EXPECT_EQ(
            Distance(levels.x[static_cast<size_t>(l)], z.slice(0, 0, std::nullopt, layer.step(l))),
            0);
      }
    }
  }
}

// theory.md 0: cells are nested, T_l = ceil(T / s^l), and all cells but the last hold s^l tokens.
TEST(Capture, CellsAreNested) {
  for (int64_t T = 1; T < 40; ++T) {
    for (const int64_t s : {2, 3, 5}) {
      Layer layer;
      layer.stride = s;
      for (int64_t l = 1; l < 5; ++l) {
        const at::Tensor fine = CellMatrix(T, layer.step(l - 1)),
                         cells = CellMatrix(T, layer.step(l));
        EXPECT_EQ(cells.size(1), LevelLength(T, s, l));
        const at::Tensor sizes = at::matmul(cells.t(), cells);
        EXPECT_EQ(Distance(sizes, sizes.diagonal().diag()), 0);
        EXPECT_TRUE((sizes.diagonal().slice(0, 0, -1) == layer.step(l)).all().item<bool>());
        // col(P_l) in col(P_{l-1}): the cell of a cell.
        const at::Tensor parent = CellMatrix(fine.size(1), s);
        EXPECT_EQ(Distance(at::matmul(fine, parent), cells), 0);
      }
    }
  }
}

class SmallModel : public ::testing::Test {
 protected:
  SmallModel() : task_{"listops", 16, 1, 40, {"a", "b", "c"}} {
    config_.model.d_model = 8;
    config_.model.layers = 2;
    config_.model.d_ff = 12;
    Resolve(config_);
    for (const int64_t length : {5, 0, 31, 40, 1, 17}) {
      std::vector<uint16_t> sequence;
      for (int64_t i = 0; i < length; ++i)
        sequence.push_back(static_cast<uint16_t>(1 + (i * 7 + length) % 15));
      dataset_.Add(sequence, 0);
    }
  }
  Config config_;
  data::TaskInfo task_;
  data::Dataset dataset_;
};

// What the second block's attention reads depends on everything before it.
TEST_F(SmallModel, ReadsWhatEachLayerReads) {
  train::Model model(config_, task_);
  model.SetTraining(false);
  const train::NamedTensors& parameters = model.parameters();
  const Find weight = In(parameters, "");
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {8}, weight(name + ".weight"), weight(name + ".bias"));
  };
  const auto dense = [&](const at::Tensor& x, const std::string& name) {
    return at::linear(x, weight(name + ".weight"), weight(name + ".bias"));
  };
  const Layer layer = ReadLayer(parameters, "blocks.0.attention.", config_.model);
  std::vector<int64_t> seen;
  const std::vector<int64_t> indices = {0, 1, 2, 3, 4, 5};
  VisitSequences(model, dataset_, indices, [&](const SequenceCapture& sequence) {
    seen.push_back(sequence.index);
    const int64_t T = sequence.length;
    ASSERT_EQ(T, dataset_.length(sequence.index));
    at::Tensor ids = at::empty({T}, at::kLong);
    for (int64_t i = 0; i < T; ++i)
      ids.mutable_data_ptr<int64_t>()[i] =
          dataset_.sequence(sequence.index)[static_cast<size_t>(i)];
    at::Tensor x =
        weight("embedding.weight").index_select(0, ids) + weight("position.weight").slice(0, 0, T);
    const at::Tensor first = norm(x, "blocks.0.attention_norm");
    x = x + RebuiltOutput(layer, In(parameters, "blocks.0.attention."), first, 2);
    const at::Tensor hidden = at::gelu(dense(norm(x, "blocks.0.ffn_norm"), "blocks.0.ffn.0"));
    x = x + dense(hidden, "blocks.0.ffn.1");
    // fp32 against double. The embedding starts at N(0, 0.02) and the norms divide by that, so an
    // absolute error of 2^-24 of order-one numbers grows fiftyfold in each of two norms.
    ASSERT_EQ(sequence.inputs.size(), 2u);
    EXPECT_LE(Distance(sequence.inputs[0], first), 1e-5);
    EXPECT_LE(Distance(sequence.inputs[1], norm(x, "blocks.1.attention_norm")), 1e-4);
  });
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 2, 3, 4, 5}));  // not the empty one
}

TEST_F(SmallModel, ChoosesTheSameExamplesEachTime) {
  const auto chosen = ChooseExamples(dataset_, 3);
  EXPECT_EQ(chosen.size(), 3u);
  EXPECT_EQ(chosen, ChooseExamples(dataset_, 3));
  std::vector<int64_t> all = ChooseExamples(dataset_, 100);
  EXPECT_TRUE(std::equal(chosen.begin(), chosen.end(), all.begin()));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (std::vector<int64_t>{0, 2, 3, 4, 5}));
}

// Data in order of their class, as IMDB's are: the first few that are visited are of both.
TEST(ChooseExamples, ABeginningIsASampleToo) {
  data::Dataset dataset;
  for (int i = 0; i < 200; ++i) dataset.Add(std::vector<uint16_t>{1}, i / 100);
  int second = 0;
  const std::vector<int64_t> chosen = ChooseExamples(dataset, 64);
  for (size_t i = 0; i < 16; ++i) second += dataset.labels[static_cast<size_t>(chosen[i])];
  EXPECT_GT(second, 2);  // of 16 draws 8 are expected, two standard deviations are 4
  EXPECT_LT(second, 14);
}

TEST_F(SmallModel, AMissingParameterIsNamed) {
  const train::Model model(config_, task_);
  try {
    ReadLayer(model.parameters(), "blocks.7.attention.", config_.model);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("blocks.7.attention."), std::string::npos);
  }
}

TEST(Layer, RotaryScoresHaveNoForm) {
  Layer layer = RandomLayer({}, 1);
  layer.rotary = true;
  EXPECT_THROW(ScoreForm(layer, 0, 0), Error);
}

}  // namespace
}  // namespace hkt::analysis
