// The options that only ablations need, each held to what it should be: uniform and frozen level
// weights, picked and undecimated levels, the gates' start.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "hkt/base/error.h"
#include "hkt/base/warn.h"
#include "hkt/nn/hkt_attention.h"
#include "hkt/nn/nn_test_util.h"
#include "hkt/nn/undecimated.h"
#include "hkt/testing/error_bound.h"

namespace hkt::nn {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kD = 12;

// As in hkt_attention_test.cc: the chain of a layer in double, and as much again for its gradient.
double ChainBound(const at::Tensor& want) {
  return 1e4 * testing::UnitRoundoff(53) * std::max(1.0, want.detach().abs().max().item<double>());
}

HktAttentionOptions Shape(bool hybrid) {
  return {.d_model = kD, .heads = 3, .kv_heads = 3, .levels = 3, .hybrid = hybrid};
}

// The same weights where both have them.
void CopyShared(const HktAttention& from, const HktAttention& to) {
  const torch::NoGradGuard no_grad;
  for (const auto& item : to->named_parameters()) item.value().copy_(Parameter(*from, item.key()));
}

using Gradients = std::vector<std::pair<std::string, at::Tensor>>;
Gradients Backward(const HktAttention& layer, const at::Tensor& out) {
  for (const auto& item : layer->named_parameters()) item.value().mutable_grad() = at::Tensor();
  (out * Normal(out.sizes(), 31).to(out.scalar_type())).sum().backward();
  Gradients gradients;
  for (const auto& item : layer->named_parameters())
    gradients.emplace_back(item.key(), item.value().grad());
  return gradients;
}

TEST(FusionOption, UniformIsLearnedAtItsStart) {
  for (const bool hybrid : {true, false}) {
    for (const bool undecimated : {true, false}) {
      HktAttentionOptions o = Shape(hybrid);
      o.undecimated = undecimated;
      HktAttention learned(o);
      Randomize(*learned, 3, at::kFloat);
      Fill(*learned, "level_logits", {0, 0, 0});
      o.fusion = Fusion::kUniform;
      HktAttention uniform(o);
      CopyShared(learned, uniform);
      EXPECT_EQ(uniform->named_parameters().find("level_logits"), nullptr);
      const at::Tensor x = Normal({2, 21, kD}, 5).to(at::kFloat);
      const at::Tensor lengths = at::tensor({21, 8}, at::kLong);
      const at::Tensor got = uniform(x, lengths), want = learned(x, lengths);
      EXPECT_TRUE(CompareTensorBits(got, want));
      const Gradients ours = Backward(uniform, got), theirs = Backward(learned, want);
      EXPECT_EQ(theirs.size(), ours.size() + 1);
      for (const auto& [name, gradient] : ours)
        EXPECT_TRUE(CompareTensorBits(gradient, Parameter(*learned, name).grad())) << name;
    }
  }
}

TEST(FusionOption, FrozenIsARandomStartWithoutAGradient) {
  HktAttentionOptions o = Shape(true);
  o.fusion = Fusion::kFrozen;
  HktAttention frozen(o), again(o);
  const at::Tensor logits = Parameter(*frozen, "level_logits");
  EXPECT_FALSE(logits.requires_grad());
  EXPECT_TRUE(Parameter(*frozen, "gate_logits").requires_grad());
  EXPECT_GT(logits.abs().min().item<double>(), 0);
  EXPECT_GT((logits - Parameter(*again, "level_logits")).abs().min().item<double>(), 0);
  HktAttention learned(Shape(true));
  CopyShared(frozen, learned);
  const at::Tensor x = Normal({2, 21, kD}, 5).to(at::kFloat);
  const at::Tensor got = frozen(x), want = learned(x);
  EXPECT_TRUE(CompareTensorBits(got, want));
  for (const auto& [name, gradient] : Backward(frozen, got))
    EXPECT_EQ(gradient.defined(), name != "level_logits") << name;
}

TEST(GateStartOption, IsTheGatesStart) {
  HktAttentionOptions o = Shape(true);
  EXPECT_EQ((Parameter(*HktAttention(o), "gate_logits") - 2).abs().max().item<double>(), 0);
  o.gate_start = 0;
  EXPECT_EQ(Parameter(*HktAttention(o), "gate_logits").abs().max().item<double>(), 0);
}

// Picked and undecimated layers against dense formulas with conv1d, which knows dilation: values
// and every gradient.
TEST(LevelOptions, EqualTheDenseFormulas) {
  SetWarningSink([](const std::string&) {});
  for (const bool picked : {true, false}) {
    for (const int64_t stride : {2, 3}) {
      for (const int64_t T : {1, 2, 5, 9, 23}) {
        for (const int variant : {0, 1, 2}) {
          HktAttentionOptions o = Shape(variant != 1);
          o.stride = stride;
          o.levels = 4;
          o.kernel_size = variant == 2 ? 4 : 3;
          o.kv_heads = variant == 2 ? 1 : 3;
          o.causal = variant != 1;
          o.psd = variant == 1;
          o.bias = variant == 1;
          o.score_gain = variant == 2 ? 1.5 : 1;
          o.fusion = variant == 1 ? Fusion::kUniform : Fusion::kLearned;
          o.downsampling = picked ? Downsampling::kPick : Downsampling::kConvolution;
          o.undecimated = !picked;
          HktAttention layer(o);
          Randomize(*layer, 11);
          const at::Tensor x = Normal({2, T, kD}, static_cast<uint64_t>(T)).requires_grad_();
          SCOPED_TRACE(Concat(picked ? "picked" : "undecimated", " stride ", stride, " T ", T,
                              " variant ", variant));
          const at::Tensor got = layer(x), want = DenseLayer(*layer, x, RightPyramid(*layer));
          EXPECT_TRUE(CompareTensors(got, want, ChainBound(want)));
          const Gradients ours = Backward(layer, got);
          const at::Tensor d_x = x.grad();
          x.mutable_grad() = at::Tensor();
          const Gradients theirs = Backward(layer, want);
          EXPECT_TRUE(CompareTensors(d_x, x.grad(), ChainBound(x.grad())));
          for (size_t i = 0; i < ours.size(); ++i) {
            ASSERT_TRUE(ours[i].second.defined() && theirs[i].second.defined()) << ours[i].first;
            EXPECT_TRUE(
                CompareTensors(ours[i].second, theirs[i].second, ChainBound(theirs[i].second)))
                << ours[i].first;
          }
        }
      }
    }
  }
  SetWarningSink(nullptr);
}

// Rotary positions are those of the tokens at every level.
TEST(LevelOptions, UndecimatedRotaryScoresDependOnDistances) {
  HktAttentionOptions o = Shape(false);
  o.rotary = true;
  o.undecimated = true;
  HktAttention layer(o);
  Randomize(*layer, 11);
  const at::Tensor x = Normal({1, 17, kD}, 2);
  const at::Tensor want = DenseLayer(*layer, x, RightPyramid(*layer));
  EXPECT_TRUE(CompareTensors(layer(x), want, ChainBound(want)));
}

// At the tokens that the pyramid keeps, the levels are the pyramid's.
TEST(LevelOptions, UndecimatedLevelsPassThroughThePyramids) {
  Downsample first(kD, 3, 3), second(kD, 3, 3);
  Randomize(*first, 1);
  Randomize(*second, 2);
  const at::Tensor x = Normal({2, 31, kD}, 4);
  const at::Tensor pyramid = second(first(x));
  const at::Tensor full = second->EveryPosition(first->EveryPosition(x, 1), 3);
  EXPECT_EQ(full.size(1), 31);
  const at::Tensor kept = full.slice(1, 0, std::nullopt, 9);
  EXPECT_TRUE(CompareTensors(kept, pyramid, ChainBound(pyramid)));
  EXPECT_EQ(LevelStep(3, 0), 1);
  EXPECT_EQ(LevelStep(3, 2), 9);
  EXPECT_EQ(first->EveryPosition(x.slice(1, 0, 0), 9).size(1), 0);
}

TEST(LevelOptions, PaddingOfNaNChangesNoBit) {
  const at::Tensor lengths = at::tensor({21, 13, 0, 1, 8}, at::kLong);
  const at::Tensor valid = (at::arange(21, at::kLong) < lengths.unsqueeze(1)).unsqueeze(2);
  for (const bool picked : {true, false}) {
    for (const bool hybrid : {true, false}) {
      HktAttentionOptions o = Shape(hybrid);
      o.downsampling = picked ? Downsampling::kPick : Downsampling::kConvolution;
      o.undecimated = !picked;
      HktAttention layer(o);
      Randomize(*layer, 3, at::kFloat);
      const at::Tensor x = Normal({5, 21, kD}, 4).to(at::kFloat);
      const at::Tensor clean = layer(x, lengths);
      const Gradients want = Backward(layer, clean);
      const at::Tensor poisoned = layer(at::where(valid, x, kNaN), lengths);
      EXPECT_TRUE(AllFinite(clean));
      EXPECT_TRUE(CompareTensorBits(poisoned, clean));
      EXPECT_EQ(at::where(valid, 0, clean).abs().max().item<double>(), 0);
      const Gradients got = Backward(layer, poisoned);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(CompareTensorBits(got[i].second, want[i].second)) << want[i].first;
      // The valid part is the layer on the shorter sequence.
      const at::Tensor shorter = layer(x[1].unsqueeze(0).slice(1, 0, 13));
      EXPECT_TRUE(CompareTensors(clean[1].slice(0, 0, 13), shorter[0], 1e-4));
    }
  }
}

TEST(LevelOptions, ParametersAndErrors) {
  const auto count = [](const HktAttentionOptions& o) {
    int64_t n = 0;
    for (const auto& item : HktAttention(o)->named_parameters()) n += item.value().numel();
    return n;
  };
  for (const auto fusion : {Fusion::kLearned, Fusion::kUniform, Fusion::kFrozen}) {
    for (const int levels : {0, 1, 2}) {
      HktAttentionOptions o = Shape(fusion != Fusion::kFrozen);
      o.fusion = fusion;
      if (levels == 1) o.downsampling = Downsampling::kPick;
      o.undecimated = levels == 2;
      EXPECT_EQ(ParameterCount(o), count(o));
      for (const auto& item : HktAttention(o)->named_parameters())
        EXPECT_EQ(levels == 1 && item.key().starts_with("downsample"), false) << item.key();
    }
  }
  HktAttentionOptions o = Shape(true);
  o.undecimated = true;
  o.downsampling = Downsampling::kPick;
  EXPECT_THAT([&] { CheckOptions(o); }, ThrowsMessage<UsageError>(HasSubstr("undecimated")));
  o = Shape(true);
  o.levels = 1;
  o.fusion = Fusion::kUniform;
  EXPECT_THAT([&] { CheckOptions(o); }, ThrowsMessage<UsageError>(HasSubstr("levels is 1")));
  o = Shape(true);
  o.gate_start = kNaN;
  EXPECT_THAT([&] { CheckOptions(o); }, ThrowsMessage<UsageError>(HasSubstr("gate_start")));
}

}  // namespace
}  // namespace hkt::nn
