// What the layer computes: against PyTorch's own attention and convolution where it reduces to
// them, against dense formulas everywhere, its Jacobian, its padding, its names and its errors.

#include "hkt/nn/hkt_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/base/warn.h"
#include "hkt/nn/nn_test_util.h"
#include "hkt/testing/error_bound.h"

namespace hkt::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Two ways to write the same layer in double differ by the order of their sums: projections of d
// terms, scores, a softmax, sums of T terms, an output projection. Each link multiplies the
// relative error by at most the terms it sums; with everything of order 1 to 10 here, 1e4 roundings
// of numbers up to `largest` bound the chain.
double ChainBound(const at::Tensor& want) {
  return 1e4 * testing::UnitRoundoff(53) * std::max(1.0, want.detach().abs().max().item<double>());
}

HktAttention MakeLayer(const HktAttentionOptions& options, uint64_t seed = 1) {
  HktAttention layer(options);
  Randomize(*layer, seed);
  layer->eval();
  return layer;
}

// Multi-head attention of level 0 written with PyTorch's operator.
at::Tensor StandardAttention(const HktAttentionImpl& layer, const at::Tensor& x) {
  const auto& o = layer.options();
  const auto project = [&](const char* name, int64_t heads) {
    const at::Tensor y = at::linear(x, Parameter(layer, name));
    return y.unflatten(2, {heads, o.d_model / o.heads}).transpose(1, 2);
  };
  const at::Tensor out = at::scaled_dot_product_attention(
      project("query.0.weight", o.heads), project("key.0.weight", o.kv_heads),
      project("value.weight", o.kv_heads), std::nullopt, 0, o.causal);
  return at::linear(out.transpose(1, 2).flatten(2), Parameter(layer, "output.weight"),
                    Parameter(layer, "output.bias"));
}

TEST(HktAttention, OneLevelWithoutGatesIsStandardAttention) {
  for (const bool causal : {true, false}) {
    HktAttention layer = MakeLayer(
        {.d_model = 24, .heads = 3, .kv_heads = 3, .levels = 1, .hybrid = false, .causal = causal});
    const at::Tensor x = Normal({2, 37, 24}, 5), want = StandardAttention(*layer, x);
    EXPECT_TRUE(CompareTensors(layer(x), want, ChainBound(want)));
  }
}

TEST(HktAttention, OneLevelWithOpenGatesIsStandardAttention) {
  HktAttention layer = MakeLayer({.d_model = 24, .heads = 3, .kv_heads = 3, .levels = 1});
  Fill(*layer, "gate_logits", {40});
  const at::Tensor x = Normal({2, 37, 24}, 5), want = StandardAttention(*layer, x);
  EXPECT_TRUE(CompareTensors(layer(x), want, ChainBound(want)));
}

TEST(HktAttention, OneLevelWithShutGatesIsACausalConvolution) {
  for (const int64_t k : {1, 3, 4}) {
    HktAttention layer =
        MakeLayer({.d_model = 24, .heads = 3, .kv_heads = 3, .levels = 1, .kernel_size = k});
    Fill(*layer, "gate_logits", {-40});
    const at::Tensor x = Normal({2, 37, 24}, 5);
    const at::Tensor want =
        at::linear(SeparableConv1d(*layer, "conv.0", x, k - 1, 1),
                   Parameter(*layer, "output.weight"), Parameter(*layer, "output.bias"));
    EXPECT_TRUE(CompareTensors(layer(x), want, ChainBound(want)));
  }
}

TEST(HktAttention, AllWeightOnLevelZeroIsStandardAttention) {
  for (const bool hybrid : {false, true}) {
    HktAttention layer = MakeLayer({.d_model = 24, .heads = 3, .kv_heads = 3, .hybrid = hybrid});
    Fill(*layer, "level_logits", {0, -200, -200});
    if (hybrid) Fill(*layer, "gate_logits", {40, 40, 40});
    const at::Tensor x = Normal({2, 37, 24}, 5), want = StandardAttention(*layer, x);
    EXPECT_TRUE(CompareTensors(layer(x), want, ChainBound(want)));
  }
}

TEST(HktAttention, ALastLevelWithoutWeightIsNotThere) {
  for (const bool hybrid : {false, true}) {
    HktAttentionOptions options{.d_model = 24, .heads = 3, .kv_heads = 3, .hybrid = hybrid};
    HktAttention three = MakeLayer(options);
    options.levels = 2;
    HktAttention two = MakeLayer(options, 99);
    torch::NoGradGuard no_grad;
    for (auto& item : two->named_parameters()) {
      const at::Tensor from = Parameter(*three, item.key());
      const bool logits = item.key().find("logits") != std::string::npos;
      item.value().copy_(logits ? from.slice(1, 0, 2) : from);
    }
    Parameter(*three, "level_logits").select(1, 2).fill_(-1000);
    const at::Tensor x = Normal({2, 37, 24}, 5), want = two(x);
    EXPECT_TRUE(CompareTensors(three(x), want, ChainBound(want)));
  }
}

// The test knows no operator of ours here: dense scores and conv1d.
TEST(HktAttention, EqualsTheDenseFormulas) {
  SetWarningSink([](const std::string&) {});
  int cases = 0;
  for (const int64_t levels : {1, 2, 3, 4}) {
    for (const int64_t stride : {2, 3, 4}) {
      for (const int64_t T : {1, 2, 3, 4, 5, 9, 23}) {
        for (const int variant : {0, 1, 2, 3}) {
          HktAttentionOptions o{.d_model = 16, .heads = 4, .kv_heads = 4, .levels = levels};
          o.stride = stride;
          o.hybrid = variant % 2 == 0;
          o.kernel_size = variant == 3 ? 4 : 3;
          o.causal = variant != 1;
          o.rotary = variant >= 2;
          o.psd = variant == 2;
          o.kv_heads = variant == 3 ? 2 : 4;
          o.bias = variant >= 1;
          o.score_gain = variant == 0 ? 1.0 : std::sqrt(3.0);
          HktAttention layer = MakeLayer(o);
          const at::Tensor x = Normal({2, T, 16}, static_cast<uint64_t>(T));
          const at::Tensor want = DenseLayer(*layer, x, RightPyramid(*layer));
          EXPECT_TRUE(CompareTensors(layer(x), want, ChainBound(want)))
              << "levels " << levels << " stride " << stride << " T " << T << " variant "
              << variant;
          ++cases;
        }
      }
    }
  }
  EXPECT_EQ(cases, 336);
  SetWarningSink(nullptr);
}

// Derivatives.

// Largest difference between the Jacobian of out(leaf) by backward and by differences, leaf by
// leaf. The stencil of fourth order errs by h^4 f'''''/30 + 1.5 eps |f|/h: below 1e-11 at h = 1e-3
// for fifth derivatives up to 300; the layers here have weights of order 1, and 1e-8 leaves room
// for fifth derivatives of 3e5.
constexpr double kStep = 1e-3;
constexpr double kJacobianBound = 1e-8;

using Leaves = std::vector<std::pair<std::string, at::Tensor>>;

void CheckJacobian(const std::function<at::Tensor()>& out, const Leaves& leaves) {
  const at::Tensor value = out().flatten();
  const int64_t rows = value.numel();
  std::vector<at::Tensor> exact;  // one [rows, numel] a leaf
  for (const auto& [name, leaf] : leaves)
    exact.push_back(at::zeros({rows, leaf.numel()}, at::kDouble));
  for (int64_t r = 0; r < rows; ++r) {
    for (const auto& [name, leaf] : leaves) leaf.mutable_grad() = at::Tensor();
    value[r].backward({}, /*retain_graph=*/true);
    for (size_t i = 0; i < leaves.size(); ++i) {
      ASSERT_TRUE(leaves[i].second.grad().defined()) << leaves[i].first << " has no gradient";
      exact[i][r].copy_(leaves[i].second.grad().flatten());
    }
  }
  torch::NoGradGuard no_grad;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const at::Tensor leaf = leaves[i].second;
    double* element = leaf.mutable_data_ptr<double>();
    std::vector<at::Tensor> columns;
    for (int64_t c = 0; c < leaf.numel(); ++c, ++element) {
      const double middle = *element;
      const auto at_offset = [&](double steps) {
        *element = middle + steps * kStep;
        return out().flatten();
      };
      const at::Tensor near = at_offset(1) - at_offset(-1), far = at_offset(2) - at_offset(-2);
      columns.push_back((8 * near - far) / (12 * kStep));
      *element = middle;
    }
    EXPECT_TRUE(CompareTensors(exact[i], at::stack(columns, 1), kJacobianBound)) << leaves[i].first;
  }
}

void CheckEveryGradient(HktAttentionOptions options, const std::optional<at::Tensor>& lengths,
                        int64_t T) {
  HktAttention layer = MakeLayer(options, 11);
  const int64_t B = lengths ? lengths->size(0) : 1;
  const at::Tensor x = Normal({B, T, options.d_model}, 12).requires_grad_();
  const auto out = [&] { return layer(x, lengths); };
  Leaves leaves{{"x", x}};
  for (const auto& item : layer->named_parameters()) leaves.emplace_back(item.key(), item.value());
  CheckJacobian(out, leaves);
}

TEST(HktAttentionGradient, HybridWithLengths) {
  CheckEveryGradient({.d_model = 4, .heads = 2, .kv_heads = 2, .score_gain = std::sqrt(3.0)},
                     at::tensor({6, 4}, at::kLong), 6);
}

TEST(HktAttentionGradient, FusionOnlyBidirectionalWithLengths) {
  CheckEveryGradient({.d_model = 4,
                      .heads = 2,
                      .kv_heads = 2,
                      .hybrid = false,
                      .causal = false,
                      .score_gain = 1.7},
                     at::tensor({6, 4}, at::kLong), 6);
}

TEST(HktAttentionGradient, RotarySharedKeysBiasBidirectional) {
  CheckEveryGradient({.d_model = 8,
                      .heads = 4,
                      .kv_heads = 2,
                      .levels = 2,
                      .rotary = true,
                      .causal = false,
                      .bias = true,
                      .score_gain = 0.6},
                     std::nullopt, 5);
}

TEST(HktAttentionGradient, PsdRotaryBiasFusionOnly) {
  CheckEveryGradient({.d_model = 4,
                      .heads = 2,
                      .kv_heads = 2,
                      .hybrid = false,
                      .psd = true,
                      .rotary = true,
                      .bias = true,
                      .score_gain = 1.3},
                     std::nullopt, 7);
}

TEST(HktAttentionGradient, StrideThreeKernelFour) {
  CheckEveryGradient({.d_model = 4,
                      .heads = 2,
                      .kv_heads = 1,
                      .levels = 2,
                      .stride = 3,
                      .kernel_size = 4,
                      .score_gain = 2},
                     at::tensor({7}, at::kLong), 8);
}

// The differences see a wrong gradient: the same check on a function that hides a factor of the
// derivative.
TEST(HktAttentionGradient, TheCheckSeesAWrongDerivative) {
  static const at::Tensor x = Normal({3}, 1).requires_grad_();
  const auto right = [] { return x * x * x; };
  const auto wrong = [] { return x * x * x + 1e-7 * x.detach() * x - 1e-7 * x * x; };
  CheckJacobian(right, {{"x", x}});
  EXPECT_NONFATAL_FAILURE(CheckJacobian(wrong, {{"x", x}}), "x");
}

TEST(HktAttention, AShortSequenceGivesEveryParameterAGradient) {
  SetWarningSink([](const std::string&) {});
  for (const int64_t T : {1, 2, 3}) {
    HktAttention layer = MakeLayer({.d_model = 8, .heads = 2, .kv_heads = 2});
    layer(Normal({2, T, 8}, 3)).backward(Normal({2, T, 8}, 4));
    for (const auto& item : layer->named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key() << " at T = " << T;
      EXPECT_TRUE(AllFinite(item.value().grad())) << item.key() << " at T = " << T;
    }
    // A level of one position shifts every score of a row alike. Its gradient is a sum of T
    // cancelling terms.
    const double zero = 100 * testing::UnitRoundoff(53);
    EXPECT_LE(Parameter(*layer, "query.2.weight").grad().abs().max().item<double>(), zero);
    EXPECT_LE(Parameter(*layer, "key.2.weight").grad().abs().max().item<double>(), zero);
  }
  SetWarningSink(nullptr);
}

TEST(HktAttention, SaturatedGatesAndLevelsStayFinite) {
  for (const double gate : {-800.0, 800.0}) {
    HktAttention layer = MakeLayer({.d_model = 8, .heads = 2, .kv_heads = 2});
    Fill(*layer, "gate_logits", {gate, -gate, gate});
    Fill(*layer, "level_logits", {-800, 0, 800});
    layer->to(at::kFloat);
    const at::Tensor x = Normal({2, 9, 8}, 3).to(at::kFloat).requires_grad_();
    const at::Tensor out = layer(x);
    out.sum().backward();
    EXPECT_TRUE(AllFinite(out));
    EXPECT_TRUE(AllFinite(x.grad()));
    for (const auto& item : layer->named_parameters())
      EXPECT_TRUE(AllFinite(item.value().grad())) << item.key();
  }
}

// Padding.

struct Pass {
  at::Tensor out, d_x;
  std::vector<std::pair<std::string, at::Tensor>> d_parameters;
};

Pass Differentiate(HktAttention layer, const at::Tensor& input, const at::Tensor& lengths,
                   const at::Tensor& d_out) {
  layer->zero_grad();
  const at::Tensor x = input.clone().requires_grad_();
  Pass run;
  run.out = layer(x, lengths);
  run.out.backward(d_out);
  run.d_x = x.grad();
  for (const auto& item : layer->named_parameters()) {
    run.d_parameters.emplace_back(item.key(), item.value().grad().clone());
  }
  return run;
}

TEST(HktAttention, PaddingOfNaNChangesNoBit) {
  const int64_t T = 21, d = 8;
  const at::Tensor lengths = at::tensor({21, 13, 0, 1, 8}, at::kLong);
  const at::Tensor valid = (at::arange(T, at::kLong) < lengths.unsqueeze(1)).unsqueeze(2);
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const bool causal : {true, false}) {
      for (const bool hybrid : {true, false}) {
        for (const bool rotary : {true, false}) {
          HktAttentionOptions o{.d_model = d,
                                .heads = 2,
                                .kv_heads = 1,
                                .hybrid = hybrid,
                                .rotary = rotary,
                                .causal = causal,
                                .bias = true};
          HktAttention layer(o);
          Randomize(*layer, 3, type);
          const at::Tensor x = Normal({5, T, d}, 4).to(type), d_out = Normal({5, T, d}, 5).to(type);
          const Pass clean = Differentiate(layer, x, lengths, d_out);
          const Pass poisoned = Differentiate(layer, at::where(valid, x, kNaN), lengths,
                                              at::where(valid, d_out, kNaN));
          EXPECT_TRUE(AllFinite(clean.out));
          EXPECT_TRUE(CompareTensorBits(poisoned.out, clean.out));
          EXPECT_TRUE(CompareTensorBits(poisoned.d_x, clean.d_x));
          for (size_t i = 0; i < clean.d_parameters.size(); ++i) {
            EXPECT_TRUE(AllFinite(clean.d_parameters[i].second)) << clean.d_parameters[i].first;
            EXPECT_TRUE(
                CompareTensorBits(poisoned.d_parameters[i].second, clean.d_parameters[i].second))
                << clean.d_parameters[i].first;
          }
          EXPECT_EQ(at::where(valid, 0, clean.out).abs().max().item<double>(), 0);
          EXPECT_EQ(at::where(valid, 0, clean.d_x).abs().max().item<double>(), 0);
          EXPECT_GT(clean.d_x[0].abs().min().item<double>(), 0);
          EXPECT_GT(clean.out[3][0].abs().min().item<double>(), 0);
        }
      }
    }
  }
}

// The valid part is the layer on the shorter sequence.
TEST(HktAttention, LengthsCutTheSequence) {
  for (const bool causal : {true, false}) {
    HktAttention layer =
        MakeLayer({.d_model = 8, .heads = 2, .kv_heads = 2, .rotary = true, .causal = causal});
    const at::Tensor x = Normal({1, 21, 8}, 4);
    for (const int64_t n : {1, 2, 5, 8, 20, 21}) {
      const at::Tensor got = layer(x, at::full({1}, n, at::kLong)).slice(1, 0, n);
      const at::Tensor want = layer(x.slice(1, 0, n));
      EXPECT_TRUE(CompareTensors(got, want, ChainBound(want))) << n;
    }
  }
}

TEST(HktAttention, WithoutTokensEveryGradientIsZero) {
  for (const bool causal : {true, false}) {
    HktAttention layer = MakeLayer({.d_model = 8, .heads = 2, .kv_heads = 2, .causal = causal});
    const Pass run = Differentiate(layer, at::full({2, 9, 8}, kNaN, at::kDouble),
                                   at::tensor({0, 0}, at::kLong), Normal({2, 9, 8}, 5));
    EXPECT_EQ(run.out.abs().max().item<double>(), 0);
    EXPECT_EQ(run.d_x.abs().max().item<double>(), 0);
    for (const auto& [name, gradient] : run.d_parameters)
      EXPECT_EQ(gradient.abs().max().item<double>(), 0) << name;
  }
}

TEST(HktAttention, EmptyInputsGiveEmptyOutputs) {
  SetWarningSink([](const std::string&) {});
  for (const bool rotary : {true, false}) {
    HktAttention layer = MakeLayer({.d_model = 8, .heads = 2, .kv_heads = 2, .rotary = rotary});
    for (const auto& [B, T] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}, {0, 0}}) {
      const at::Tensor x = at::zeros({B, T, 8}, at::kDouble).requires_grad_();
      const at::Tensor out = layer(x);
      EXPECT_THAT(out.sizes(), ElementsAre(B, T, 8));
      out.sum().backward();
      EXPECT_THAT(x.grad().sizes(), ElementsAre(B, T, 8));
      EXPECT_THAT(layer(x, at::zeros({B}, at::kLong)).sizes(), ElementsAre(B, T, 8));
    }
  }
  SetWarningSink(nullptr);
}

// Types.

TEST(HktAttention, BFloat16FollowsTheDoubleLayer) {
  HktAttentionOptions o{.d_model = 16, .heads = 2, .kv_heads = 2, .rotary = true};
  HktAttention layer = MakeLayer(o), half = MakeLayer(o);
  half->to(at::kBFloat16);
  const at::Tensor x = Normal({2, 19, 16}, 3), lengths = at::tensor({19, 11}, at::kLong);
  const at::Tensor want = layer(x, lengths);
  // Six roundings in a row (input, level, projection, fold, attention, output) of sums of d = 16
  // terms, each term off by the unit roundoff of bfloat16.
  const double bound = 6 * 16 * testing::UnitRoundoff(8) * want.abs().max().item<double>();
  const at::Tensor got = half(x.to(at::kBFloat16), lengths);
  EXPECT_EQ(got.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(CompareTensors(got, want, bound));
}

// The table of angles outlives the call that made it.
TEST(HktAttention, RotaryTablesServeLaterCallsOfOtherKinds) {
  HktAttention layer = MakeLayer({.d_model = 8, .heads = 2, .kv_heads = 2, .rotary = true});
  const at::Tensor x = Normal({1, 30, 8}, 3);
  at::Tensor first;
  {
    c10::InferenceMode inference;
    first = layer(x.slice(1, 0, 20));
  }
  const at::Tensor again = layer(x.slice(1, 0, 20));
  again.sum().backward();
  EXPECT_TRUE(CompareTensorBits(again, first));
  const at::Tensor longer = layer(x);
  EXPECT_TRUE(CompareTensors(longer.slice(1, 0, 20), again, ChainBound(again)));
  layer->to(at::kFloat);
  EXPECT_TRUE(CompareTensors(layer(x.to(at::kFloat)), longer,
                             1e4 * testing::UnitRoundoff(24) * longer.abs().max().item<double>()));
}

TEST(HktAttention, DropoutActsInTrainingOnly) {
  HktAttention layer = MakeLayer({.d_model = 8, .heads = 2, .kv_heads = 2, .dropout = 0.5});
  const at::Tensor x = Normal({1, 30, 8}, 3), quiet = layer(x);
  EXPECT_TRUE(CompareTensorBits(layer(x), quiet));
  layer->train();
  const at::Tensor dropped = layer(x);
  const double zeros = (dropped == 0).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(zeros, 0.5, 5 * 0.5 / std::sqrt(240.0));  // five standard errors of 240 coins
  EXPECT_TRUE(
      CompareTensors(at::where(dropped == 0, quiet, dropped / 2), quiet, ChainBound(quiet)));
}

// Names.

std::vector<std::string> Listing(const torch::nn::Module& module) {
  std::vector<std::string> lines;
  for (const auto& item : module.named_parameters())
    lines.push_back(Concat(item.key(), " ", item.value().sizes()));
  return lines;
}

TEST(HktAttention, ParametersOfTheDefaultLayer) {
  HktAttention layer(HktAttentionOptions{.d_model = 8, .heads = 2, .kv_heads = 2, .levels = 2});
  EXPECT_THAT(
      Listing(*layer),
      ElementsAre("level_logits [2, 2]", "gate_logits [2, 2]", "query.0.weight [8, 8]",
                  "query.1.weight [8, 8]", "key.0.weight [8, 8]", "key.1.weight [8, 8]",
                  "value.weight [8, 8]", "output.weight [8, 8]", "output.bias [8]",
                  "downsample.1.depthwise.weight [8, 1, 3]", "downsample.1.depthwise.bias [8]",
                  "downsample.1.pointwise.weight [8, 8]", "downsample.1.pointwise.bias [8]",
                  "downsample.1.norm.weight [8]", "downsample.1.norm.bias [8]",
                  "conv.0.depthwise.weight [8, 1, 3]", "conv.0.depthwise.bias [8]",
                  "conv.0.pointwise.weight [8, 8]", "conv.0.pointwise.bias [8]",
                  "conv.1.depthwise.weight [8, 1, 3]", "conv.1.depthwise.bias [8]",
                  "conv.1.pointwise.weight [8, 8]", "conv.1.pointwise.bias [8]"));
}

TEST(HktAttention, ParametersOfOtherLayers) {
  HktAttention bias(HktAttentionOptions{.d_model = 8,
                                        .heads = 4,
                                        .kv_heads = 2,
                                        .levels = 1,
                                        .hybrid = false,
                                        .rotary = true,
                                        .bias = true});
  EXPECT_THAT(Listing(*bias),
              ElementsAre("level_logits [4, 1]", "query.0.weight [8, 8]", "query.0.bias [8]",
                          "key.0.weight [4, 8]", "key.0.bias [4]", "value.weight [4, 8]",
                          "value.bias [4]", "output.weight [8, 8]", "output.bias [8]"));
  HktAttention psd(
      HktAttentionOptions{.d_model = 8, .heads = 2, .kv_heads = 2, .levels = 1, .psd = true});
  EXPECT_THAT(Listing(*psd),
              ElementsAre("level_logits [2, 1]", "gate_logits [2, 1]", "query.0.weight [8, 8]",
                          "value.weight [8, 8]", "output.weight [8, 8]", "output.bias [8]",
                          "conv.0.depthwise.weight [8, 1, 3]", "conv.0.depthwise.bias [8]",
                          "conv.0.pointwise.weight [8, 8]", "conv.0.pointwise.bias [8]"));
}

TEST(HktAttention, StartsAsPyTorchsLayersDo) {
  HktAttention layer(HktAttentionOptions{.d_model = 64, .heads = 2, .kv_heads = 2});
  EXPECT_TRUE((Parameter(*layer, "level_logits") == 0).all().item<bool>());
  EXPECT_TRUE((Parameter(*layer, "gate_logits") == 2).all().item<bool>());
  EXPECT_TRUE((Parameter(*layer, "downsample.1.norm.weight") == 1).all().item<bool>());
  EXPECT_TRUE((Parameter(*layer, "downsample.1.norm.bias") == 0).all().item<bool>());
  // Uniform within 1/sqrt(fan in): the largest of n draws is above (1 - 14/n) of the bound but for
  // a chance of e^-14.
  const auto reaches = [&](const char* name, double bound) {
    const at::Tensor size = Parameter(*layer, name).detach().abs();
    const double largest = size.max().item<double>(), n = static_cast<double>(size.numel());
    EXPECT_LE(largest, bound * (1 + testing::UnitRoundoff(24))) << name;
    EXPECT_GE(largest, bound * (1 - 14 / n)) << name;
  };
  for (const char* name :
       {"query.0.weight", "key.2.weight", "value.weight", "output.weight", "output.bias",
        "conv.1.pointwise.weight", "downsample.2.pointwise.bias"}) {
    reaches(name, 1 / std::sqrt(64.0));
  }
  for (const char* name :
       {"conv.0.depthwise.weight", "conv.0.depthwise.bias", "downsample.1.depthwise.weight"}) {
    reaches(name, 1 / std::sqrt(3.0));
  }
}

// Errors and warnings.

std::string OptionError(const HktAttentionOptions& options) {
  try {
    HktAttention layer(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(HktAttention, WrongOptionsAreNamed) {
  EXPECT_EQ(OptionError({.heads = 0}), "heads is 0, must be at least 1");
  EXPECT_EQ(OptionError({.kv_heads = 0}), "kv_heads is 0, must be at least 1");
  EXPECT_EQ(OptionError({.d_model = 0}), "d_model is 0, must be at least 1");
  EXPECT_EQ(OptionError({.levels = 0}), "levels is 0, must be at least 1");
  EXPECT_EQ(OptionError({.stride = 1}), "stride is 1, must be at least 2");
  EXPECT_EQ(OptionError({.kernel_size = 0}), "kernel_size is 0, must be at least 1");
  EXPECT_EQ(OptionError({.d_model = 65}), "d_model is 65, must be a multiple of heads = 2");
  EXPECT_EQ(OptionError({.heads = 4, .kv_heads = 3}), "kv_heads is 3, must divide heads = 4");
  EXPECT_EQ(OptionError({.heads = 4, .kv_heads = 2, .psd = true}),
            "psd needs kv_heads = heads; kv_heads is 2, heads is 4");
  EXPECT_EQ(OptionError({.d_model = 6, .rotary = true}),
            "rotary needs an even head width; d_model / heads = 3");
  EXPECT_EQ(OptionError({.score_gain = kNaN}), "score_gain is nan, must be above 0 and finite");
  EXPECT_EQ(OptionError({.score_gain = 0}), "score_gain is 0, must be above 0 and finite");
  EXPECT_EQ(OptionError({.dropout = 1}), "dropout is 1, must be at least 0 and below 1");
  EXPECT_THROW(Downsample(8, 3, 1), UsageError);
  EXPECT_THROW(Downsample(8, 0, 2), UsageError);
}

TEST(HktAttention, WrongInputsAreNamed) {
  HktAttention layer(HktAttentionOptions{.d_model = 8});
  const auto message = [&](const at::Tensor& x,
                           std::optional<at::Tensor> lengths = std::nullopt) -> std::string {
    try {
      layer(x, lengths);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  };
  const at::Tensor x = at::zeros({2, 5, 8});
  EXPECT_EQ(message(x), "no error");
  EXPECT_EQ(message(at::Tensor()), "x has shape (undefined), must be [B, T, d_model = 8]");
  EXPECT_EQ(message(at::zeros({5, 8})), "x has shape [5, 8], must be [B, T, d_model = 8]");
  EXPECT_EQ(message(at::zeros({2, 5, 7})), "x has shape [2, 5, 7], must be [B, T, d_model = 8]");
  EXPECT_EQ(message(x.to(at::kDouble)), "x is Double, must be Float like the layer's weights");
  EXPECT_EQ(message(x.to(at::kLong)), "x is Long, must be Float like the layer's weights");
  EXPECT_EQ(message(at::empty({2, 5, 8}, at::kMeta)),
            "x is on meta, must be on cpu like the layer's weights");
  EXPECT_EQ(message(x, at::tensor({1, 2, 3}, at::kLong)),
            "lengths has shape [3], must be [B] = [2]");
  EXPECT_EQ(message(x, at::tensor({1, 2}, at::kInt)), "lengths is Int, must be int64");
  EXPECT_THAT(message(x, at::tensor({1, 6}, at::kLong)),
              HasSubstr("lengths[1] is 6; it must be from 0 to T = 5"));
}

TEST(HktAttention, WarnsOnceOfStridesThatSkipAndLevelsThatDoNothing) {
  std::vector<std::string> said;
  SetWarningSink([&](const std::string& message) { said.push_back(message); });
  HktAttentionOptions o{.d_model = 8, .stride = 4};
  HktAttention layer(o), same(o);
  EXPECT_THAT(said, ElementsAre(HasSubstr("stride 4 is above kernel_size 3")));
  layer(at::zeros({1, 17, 8}));
  EXPECT_EQ(said.size(), 1u);
  layer(at::zeros({1, 16, 8}));
  same(at::zeros({1, 9, 8}));
  EXPECT_THAT(said, ElementsAre(HasSubstr("stride 4"), HasSubstr("level 2 has a single position")));
  said.clear();
  HktAttention one_level(HktAttentionOptions{.d_model = 8, .levels = 1, .stride = 5});
  one_level(at::zeros({1, 1, 8}));
  EXPECT_TRUE(said.empty());
  SetWarningSink(nullptr);
}

}  // namespace
}  // namespace hkt::nn
