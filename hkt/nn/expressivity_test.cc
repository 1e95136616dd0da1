// What the layer reduces to, and what it computes that its parts and fewer levels do not
// (docs/theory.md, 2.6 and 4), by parameters that are written down.

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/linalg_svdvals.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "hkt/base/error.h"
#include "hkt/base/warn.h"
#include "hkt/nn/constructions.h"
#include "hkt/nn/nn_test_util.h"

namespace hkt::nn {
namespace {

// Layers in double with numbers of order 1: some thousand roundings.
constexpr double kExact = 1e-12;

HktAttention Random(const HktAttentionOptions& options, uint64_t seed = 1) {
  HktAttention layer(options);
  Randomize(*layer, seed);
  layer->eval();
  return layer;
}

HktAttentionOptions Shape(int64_t levels, bool hybrid = true) {
  return {.d_model = 12, .heads = 3, .kv_heads = 3, .levels = levels, .hybrid = hybrid};
}

// The layer of fewer levels or without gates, with the parameters of those names.
HktAttention Smaller(const HktAttention& layer, const HktAttentionOptions& options) {
  HktAttention smaller(options);
  smaller->to(at::kDouble);
  smaller->eval();
  torch::NoGradGuard no_grad;
  for (auto& item : smaller->named_parameters()) {
    const at::Tensor from = Parameter(*layer, item.key());
    const bool logits = item.key().find("logits") != std::string::npos;
    item.value().copy_(logits ? from.narrow(1, 0, options.levels) : from);
  }
  return smaller;
}

// 4.1

TEST(Reductions, ToStandardAttention) {
  const at::Tensor x = Normal({2, 29, 12}, 5);
  for (const int64_t levels : {1, 3}) {
    HktAttention layer = Random(Shape(levels));
    const HktAttention attention = Smaller(layer, Shape(1, /*hybrid=*/false));
    EXPECT_FALSE(CompareTensors(layer(x), HktAttention(attention)(x), 1e-3));
    OpenGates(layer);
    KeepLevelZero(layer);
    EXPECT_TRUE(CompareTensors(layer(x), HktAttention(attention)(x), kExact));
  }
}

TEST(Reductions, ToACausalConvolution) {
  const at::Tensor x = Normal({2, 29, 12}, 5);
  for (const int64_t levels : {1, 3}) {
    HktAttention layer = Random(Shape(levels));
    ShutGates(layer);
    KeepLevelZero(layer);
    const at::Tensor branch = SeparableConv1d(*layer, "conv.0", x, 2, 1);
    const at::Tensor want = at::matmul(branch, Parameter(*layer, "output.weight").t()) +
                            Parameter(*layer, "output.bias");
    EXPECT_TRUE(CompareTensors(layer(x), want, kExact));
  }
}

TEST(Reductions, ToOneLevelLess) {
  const at::Tensor x = Normal({2, 29, 12}, 5);
  for (const bool hybrid : {false, true}) {
    HktAttention layer = Random(Shape(3, hybrid));
    HktAttention two = Smaller(layer, Shape(2, hybrid));
    EXPECT_FALSE(CompareTensors(layer(x), two(x), 1e-3));
    DropLastLevel(layer);
    EXPECT_TRUE(CompareTensors(layer(x), two(x), kExact));
  }
  HktAttention one = Random(Shape(1));
  EXPECT_THROW(DropLastLevel(one), UsageError);
}

// A level of one position adds a row constant; with T <= s only the temperature 1/lambda_0 is left.
TEST(Reductions, AShortSequenceHasOneTemperature) {
  SetWarningSink([](const std::string&) {});
  HktAttention layer = Random(Shape(3, /*hybrid=*/false));
  HktAttention warm = Smaller(layer, Shape(1, false)), plain = Smaller(layer, Shape(1, false));
  const at::Tensor lambda = at::softmax(Parameter(*layer, "level_logits"), 1).select(1, 0);
  torch::NoGradGuard no_grad;
  Parameter(*warm, "query.0.weight")
      .copy_(Parameter(*warm, "query.0.weight") *
             lambda.repeat_interleave(4).unsqueeze(1));  // a head is 4 rows
  for (const int64_t T : {1, 2}) {
    const at::Tensor x = Normal({2, T, 12}, 6);
    EXPECT_TRUE(CompareTensors(layer(x), warm(x), kExact));
    EXPECT_EQ(static_cast<bool>(CompareTensors(layer(x), plain(x), kExact)), T == 1);
  }
  // From T = s + 1 on level 1 does more than that.
  const at::Tensor x = Normal({2, 3, 12}, 6);
  EXPECT_FALSE(CompareTensors(layer(x), warm(x), 1e-6));
  SetWarningSink(nullptr);
}

TEST(Reductions, GatesSaturateWithoutLoss) {
  EXPECT_EQ(at::sigmoid(at::tensor({40.0}, at::kDouble)).item<double>(), 1.0);
  EXPECT_EQ(at::sigmoid(at::tensor({40.0F}, at::kFloat)).item<float>(), 1.0F);
  // The logarithm of the sigmoid is not to be taken of the sigmoid.
  const at::Tensor far = at::tensor({-800.0}, at::kDouble);
  EXPECT_EQ(at::sigmoid(far).log().item<double>(), -INFINITY);
  EXPECT_EQ(at::log_sigmoid(far).item<double>(), -800);
  HktAttention layer = Random(Shape(3));
  Fill(*layer, "gate_logits", {-800, -800, -800});
  EXPECT_TRUE(AllFinite(layer(Normal({2, 29, 12}, 5))));
}

// Of an input channel the outputs by tap are a matrix of rank 1: not every causal convolution is
// depthwise-separable.
TEST(Reductions, TheConvolutionIsSeparable) {
  HktAttention layer = Random(Shape(1));
  ShutGates(layer);
  const at::Tensor silence = layer(at::zeros({1, 5, 12}, at::kDouble));
  for (int64_t channel = 0; channel < 12; ++channel) {
    at::Tensor impulse = at::zeros({1, 5, 12}, at::kDouble);
    impulse[0][0][channel] = 1;
    const at::Tensor response = (layer(impulse) - silence)[0].slice(0, 0, 3);  // [tap, output]
    const at::Tensor values = at::linalg_svdvals(response);
    EXPECT_GT(values[0].item<double>(), 1e-3);
    EXPECT_LE(values[1].item<double>(), kExact);
  }
}

// 4.2

at::Tensor Deviation(const at::Tensor& x) {
  const int64_t T = x.size(1);
  const at::Tensor count = at::cumsum(at::ones({T, 1}, at::kDouble), 0);
  return (at::cumsum(x, 1) / count - x) / 2;
}

TEST(MixedHead, DeviationFromTheRunningMean) {
  for (const int64_t width : {1, 5}) {
    const at::Tensor x = Normal({2, 40, width}, 7);
    EXPECT_TRUE(CompareTensors(DeviationFromRunningMean(width)(x), Deviation(x), kExact));
  }
}

constexpr double kR = 3;

// (R, R), (-R, -R), (R, -R), (-R, R) as [4, 2, 1].
at::Tensor FourSequences(double R) {
  return at::tensor({R, R, -R, -R, R, -R, -R, R}, at::kDouble).view({4, 2, 1});
}

double WorstError(const at::Tensor& got, const at::Tensor& x) {
  return (got - Deviation(x)).abs().max().item<double>();
}

TEST(MixedHead, AttentionAloneErrsByAQuarter) {
  double least = INFINITY;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    HktAttention head =
        Random({.d_model = 1, .heads = 1, .kv_heads = 1, .levels = 1, .hybrid = false}, 100 * seed);
    least = std::min(least, WorstError(head(FourSequences(kR)), FourSequences(kR)));
  }
  EXPECT_GE(least, kR / 4 - 1e-9);
  EXPECT_LT(least, kR / 2);
}

// With a position code in the values the bound is R/4 less what the code can add: it holds for
// inputs that are large beside the code.
TEST(MixedHead, WithPositionsTheBoundNeedsLargeInputs) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const at::Tensor draw = Normal({8}, seed);
    const double c = draw[0].item<double>() / 2, b = draw[1].item<double>();
    const at::Tensor code = draw.slice(0, 2, 4).view({1, 2, 1});
    for (const double R : {1.0, 1000.0}) {
      const at::Tensor x = FourSequences(R);
      const at::Tensor logits = draw[4] * x * x.transpose(1, 2) + draw[5] * x.transpose(1, 2) +
                                draw.slice(0, 6, 8).view({1, 1, 2});
      const at::Tensor mask = at::ones({2, 2}, at::kBool).triu(1);
      const at::Tensor p = at::softmax(logits.masked_fill(mask, -INFINITY), 2);
      const at::Tensor out = at::matmul(p, c * x + code) + b;
      const double reach = (code + b).abs().max().item<double>();
      EXPECT_GE(WorstError(out, x), R / 4 - reach - 1e-9);
    }
  }
}

TEST(MixedHead, AConvolutionAloneForgetsTheFirstToken) {
  at::Tensor x = Normal({1, 12, 5}, 8), y = x.clone();
  x.select(1, 0).fill_(-kR);
  y.select(1, 0).fill_(kR);
  HktAttention conv =
      Random({.d_model = 5, .heads = 1, .kv_heads = 1, .levels = 1, .hybrid = true}, 9);
  ShutGates(conv);
  EXPECT_TRUE(CompareTensors(conv(x).slice(1, 3), conv(y).slice(1, 3), kExact));
  EXPECT_FALSE(CompareTensors(conv(x).slice(1, 0, 3), conv(y).slice(1, 0, 3), 1e-6));
  for (int64_t i = 3; i < 12; ++i) {  // f moves by R/(i+1): one of the two is missed by half of it
    const at::Tensor moved = (Deviation(y) - Deviation(x)).select(1, i).abs();
    EXPECT_NEAR(moved.max().item<double>(), kR / static_cast<double>(i + 1), 1e-12);
  }
}

// The statement is about one head: the residual path supplies -x_i / 2.
TEST(MixedHead, AResidualPathMakesUpForTheBranch) {
  HktAttention mean = DeviationFromRunningMean(4);
  OpenGates(mean);
  const at::Tensor x = Normal({2, 20, 4}, 10);
  EXPECT_TRUE(CompareTensors(mean(x) / 2 - x / 2, Deviation(x), kExact));
}

// 4.3 and 2.6

const int64_t kA = 0, kB = 1, kC = 2;

at::Tensor Symbols(const std::vector<int64_t>& symbols) {
  const at::Tensor rows = at::eye(4, at::kDouble);
  return rows.index_select(0, at::tensor(symbols, at::kLong)).unsqueeze(0);
}

// A one-level head of pure attention, W_V = W_O = I.
HktAttention OneLevel(uint64_t seed) {
  HktAttention layer =
      Random({.d_model = 4, .heads = 1, .kv_heads = 1, .levels = 1, .hybrid = false}, seed);
  torch::NoGradGuard no_grad;
  Parameter(*layer, "value.weight").copy_(at::eye(4, at::kDouble));
  Parameter(*layer, "output.weight").copy_(at::eye(4, at::kDouble));
  Parameter(*layer, "output.bias").zero_();
  return layer;
}

TEST(TwoLevels, SeeTheOrderOfEarlierTokens) {
  HktAttention layer = OrderOfEarlierTokens();
  const auto at_third = [&](const std::vector<int64_t>& symbols) {
    return layer(Symbols(symbols))[0][2][0].item<double>();
  };
  EXPECT_NEAR(at_third({kA, kC, kB}), 4.0 / 9, kExact);
  EXPECT_NEAR(at_third({kC, kA, kB}), 1.0 / 3, kExact);
}

TEST(TwoLevels, OneLevelDoesNotSeeIt) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    HktAttention layer = OneLevel(100 * seed);
    const at::Tensor x = Symbols({kA, kC, kB}), y = Symbols({kC, kA, kB});
    EXPECT_TRUE(CompareTensors(layer(x)[0][2], layer(y)[0][2], kExact));
    // It does once positions are in the input.
    const at::Tensor position = Normal({1, 3, 4}, seed);
    EXPECT_FALSE(CompareTensors(layer(x + position)[0][2], layer(y + position)[0][2], 1e-6));
  }
}

// log of the weight on p over that on the token itself: S_qp - S_qq.
double LogRatio(const at::Tensor& out, int64_t q, int64_t symbol_p, int64_t symbol_q) {
  return std::log(out[0][q][symbol_p].item<double>() / out[0][q][symbol_q].item<double>());
}

// D(p, q) = S_qp(a at p, b at q) - S_qp(b at p, a at q), up to S_qq, which does not depend on p.
double Direction(HktAttention& layer, int64_t q) {
  const std::vector<int64_t> ab = q == 1 ? std::vector{kA, kB, kC} : std::vector{kA, kC, kB};
  const std::vector<int64_t> ba = q == 1 ? std::vector{kB, kA, kC} : std::vector{kB, kC, kA};
  return LogRatio(layer(Symbols(ab)), q, kA, kB) - LogRatio(layer(Symbols(ba)), q, kB, kA);
}

TEST(TwoLevels, HaveADirectionThatTurnsWithDistance) {
  HktAttention layer = TwoScaleDirection();
  EXPECT_NEAR(Direction(layer, 1), 1, 1e-10);
  EXPECT_NEAR(Direction(layer, 2), -1, 1e-10);
  // Without its second level, near and far agree: one of the two is missed by at least 1.
  KeepLevelZero(layer);
  EXPECT_NEAR(Direction(layer, 1), 2, 1e-10);
  EXPECT_NEAR(Direction(layer, 2), 2, 1e-10);
}

TEST(TwoLevels, OneLevelHasOneDirection) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    HktAttention layer = OneLevel(100 * seed);
    const double near = Direction(layer, 1), far = Direction(layer, 2);
    EXPECT_NEAR(near, far, 1e-10);
    EXPECT_GE(std::max(std::abs(near - 1), std::abs(far + 1)), 1 - 1e-10);
  }
}

}  // namespace
}  // namespace hkt::nn
