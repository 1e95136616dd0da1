// Strict causality (theory.md, 6.4): outputs before t0 do not change by a bit when x[t0:] is
// replaced, for every t0, and derivatives with respect to later tokens are exactly 0. The checker
// is held to wrong layers too: each known way to build a pyramid that leaks must be found.

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "hkt/base/error.h"
#include "hkt/base/warn.h"
#include "hkt/nn/hkt_attention.h"
#include "hkt/nn/nn_test_util.h"

namespace hkt::nn {
namespace {

// The test is blind at level l for T <= s^l; 67 is above 4^3.
constexpr int64_t kT = 67, kD = 8;

struct Leaks {
  int64_t values = 0;     // (t0, t < t0) whose output changed
  int64_t gradients = 0;  // (t, t' > t) with d out[t] / d x[t'] not 0
};

// One batch element a position: element b replaces the tokens from b on, and takes the derivative
// of output b. Base and changed runs have one shape, so that a position meets the same code path in
// both.
Leaks FindLeaks(const std::function<at::Tensor(const at::Tensor&)>& layer, at::ScalarType type) {
  const at::Tensor one = Normal({1, kT, kD}, 41).to(type), other = Normal({1, kT, kD}, 42).to(type);
  const at::Tensor positions = at::arange(kT, at::kLong);
  const at::Tensor before = positions.unsqueeze(0) < positions.unsqueeze(1);  // [b, t]: t < b
  const at::Tensor base = one.expand({kT, kT, kD}).contiguous().requires_grad_();
  const at::Tensor changed = at::where(before.unsqueeze(2), base.detach(), other);

  const at::Tensor out = layer(base), changed_out = layer(changed);
  const at::Tensor differs = (out != changed_out).any(2);  // NaN differs from everything
  Check(differs.diagonal().all().item<bool>(), "a token changed and its own output did not");

  const at::Tensor own = (positions.unsqueeze(0) == positions.unsqueeze(1)).unsqueeze(2);
  const at::Tensor d_out = at::where(own, Normal({kT, 1, kD}, 43).to(type), 0);
  out.backward(d_out);
  const at::Tensor reached = (base.grad() != 0).any(2);
  Check(reached.diagonal().all().item<bool>(), "an output has no derivative by its own token");

  const at::Tensor after = positions.unsqueeze(0) > positions.unsqueeze(1);
  return {(differs & before).sum().item<int64_t>(), (reached & after).sum().item<int64_t>()};
}

HktAttention MakeLayer(int64_t levels, int64_t stride, bool hybrid, at::ScalarType type) {
  HktAttention layer(HktAttentionOptions{.d_model = kD,
                                         .heads = 2,
                                         .kv_heads = 2,
                                         .levels = levels,
                                         .stride = stride,
                                         .hybrid = hybrid});
  Randomize(*layer, 7, type);
  return layer;
}

class Causality : public ::testing::Test {
 protected:
  Causality() {
    SetWarningSink([](const std::string&) {});
  }
  ~Causality() override { SetWarningSink(nullptr); }

  static void ForEveryShape(int64_t least_levels,
                            const std::function<void(int64_t, int64_t, bool)>& body) {
    for (const int64_t stride : {2, 3, 4}) {
      for (int64_t levels = least_levels; levels <= 4; ++levels) {
        for (const bool hybrid : {true, false}) {
          SCOPED_TRACE(Concat("stride ", stride, ", levels ", levels,
                              hybrid ? ", hybrid" : ", fusion only"));
          body(levels, stride, hybrid);
        }
      }
    }
  }

  // Every shape of L >= 2 with the layer's own parameters and another pyramid.
  using Builder = std::function<Pyramid(const HktAttentionImpl&)>;
  static void ExpectLeaks(const Builder& build) {
    ForEveryShape(2, [&](int64_t levels, int64_t stride, bool hybrid) {
      HktAttention layer = MakeLayer(levels, stride, hybrid, at::kDouble);
      const Pyramid pyramid = build(*layer);
      const Leaks leaks = FindLeaks(
          [&](const at::Tensor& x) { return DenseLayer(*layer, x, pyramid); }, at::kDouble);
      EXPECT_GT(leaks.values, 0);
      EXPECT_GT(leaks.gradients, 0);
    });
  }
};

at::Tensor Norm(const HktAttentionImpl& layer, int64_t level, const at::Tensor& x) {
  const std::string prefix = Concat("downsample.", level, ".norm.");
  return at::layer_norm(x, {kD}, Parameter(layer, prefix + "weight"),
                        Parameter(layer, prefix + "bias"), 1e-5);
}

TEST_F(Causality, TheLayerIsStrictlyCausal) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    ForEveryShape(1, [&](int64_t levels, int64_t stride, bool hybrid) {
      HktAttention layer = MakeLayer(levels, stride, hybrid, type);
      const Leaks leaks = FindLeaks([&](const at::Tensor& x) { return layer(x); }, type);
      EXPECT_EQ(leaks.values, 0);
      EXPECT_EQ(leaks.gradients, 0);
    });
  }
}

TEST_F(Causality, OtherOptionsAreStrictlyCausalToo) {
  for (const bool rotary : {true, false}) {
    HktAttention layer(HktAttentionOptions{.d_model = kD,
                                           .heads = 4,
                                           .kv_heads = rotary ? 2 : 4,
                                           .kernel_size = 4,
                                           .psd = !rotary,
                                           .rotary = rotary,
                                           .bias = true,
                                           .score_gain = 2});
    Randomize(*layer, 7, at::kFloat);
    const Leaks leaks = FindLeaks([&](const at::Tensor& x) { return layer(x); }, at::kFloat);
    EXPECT_EQ(leaks.values, 0);
    EXPECT_EQ(leaks.gradients, 0);
  }
}

// The first token of a cell is the one that its position may see.
TEST_F(Causality, PickedAndUndecimatedLevelsAreStrictlyCausalToo) {
  for (const bool picked : {true, false}) {
    ForEveryShape(2, [&](int64_t levels, int64_t stride, bool hybrid) {
      HktAttention layer(HktAttentionOptions{
          .d_model = kD,
          .heads = 2,
          .kv_heads = 2,
          .levels = levels,
          .stride = stride,
          .hybrid = hybrid,
          .downsampling = picked ? Downsampling::kPick : Downsampling::kConvolution,
          .undecimated = !picked});
      Randomize(*layer, 7, at::kFloat);
      const Leaks leaks = FindLeaks([&](const at::Tensor& x) { return layer(x); }, at::kFloat);
      EXPECT_EQ(leaks.values, 0);
      EXPECT_EQ(leaks.gradients, 0);
    });
  }
}

TEST_F(Causality, PickingTheLastTokenOfACellIsFound) {
  ExpectLeaks([](const HktAttentionImpl& layer) -> Pyramid {
    return [&layer](const at::Tensor& x, int64_t) {
      const int64_t s = layer.options().stride;
      const at::Tensor last = at::arange(0, x.size(1), s, at::kLong) + s - 1;
      return x.index_select(1, last.clamp_max(x.size(1) - 1));
    };
  });
}

TEST_F(Causality, TheRightPyramidPassesWhereTheWrongOnesFail) {
  ForEveryShape(1, [](int64_t levels, int64_t stride, bool hybrid) {
    HktAttention layer = MakeLayer(levels, stride, hybrid, at::kDouble);
    const Pyramid pyramid = RightPyramid(*layer);
    const Leaks leaks =
        FindLeaks([&](const at::Tensor& x) { return DenseLayer(*layer, x, pyramid); }, at::kDouble);
    EXPECT_EQ(leaks.values, 0);
    EXPECT_EQ(leaks.gradients, 0);
  });
}

TEST_F(Causality, AWindowThatEndsOneLaterIsFound) {
  ExpectLeaks([](const HktAttentionImpl& layer) -> Pyramid {
    return [&layer](const at::Tensor& x, int64_t level) {
      const auto& o = layer.options();
      const at::Tensor y =
          SeparableConv1d(layer, Concat("downsample.", level), x, o.kernel_size - 2, o.stride);
      return at::gelu(Norm(layer, level, y));
    };
  });
}

// The usual streaming recipe, k - s zeros on the left: the window ends with its cell.
TEST_F(Causality, AWindowThatEndsWithItsCellIsFound) {
  ExpectLeaks([](const HktAttentionImpl& layer) -> Pyramid {
    return [&layer](const at::Tensor& x, int64_t level) {
      const auto& o = layer.options();
      const at::Tensor y = SeparableConv1d(layer, Concat("downsample.", level), x,
                                           o.kernel_size - o.stride, o.stride);
      return at::gelu(Norm(layer, level, y));
    };
  });
}

TEST_F(Causality, TheMeanOfTheCellIsFound) {
  ExpectLeaks([](const HktAttentionImpl& layer) -> Pyramid {
    return [&layer](const at::Tensor& x, int64_t level) {
      const int64_t s = layer.options().stride, T = x.size(1), Tl = (T + s - 1) / s;
      const std::string prefix = Concat("downsample.", level, ".pointwise.");
      const at::Tensor cells = at::constant_pad_nd(x, {0, 0, 0, Tl * s - T}).unflatten(1, {Tl, s});
      const at::Tensor y = at::linear(cells.mean(2), Parameter(layer, prefix + "weight"),
                                      Parameter(layer, prefix + "bias"));
      return at::gelu(Norm(layer, level, y));
    };
  });
}

TEST_F(Causality, NormalisingOverTimeIsFound) {
  ExpectLeaks([](const HktAttentionImpl& layer) -> Pyramid {
    return [&layer](const at::Tensor& x, int64_t level) {
      const auto& o = layer.options();
      const at::Tensor y =
          SeparableConv1d(layer, Concat("downsample.", level), x, o.kernel_size - 1, o.stride);
      return at::gelu(at::layer_norm(y, {y.size(1), kD}, std::nullopt, std::nullopt, 1e-5));
    };
  });
}

// The bidirectional layer sees what follows; a checker that finds nothing there finds nothing
// anywhere.
TEST_F(Causality, TheBidirectionalLayerIsFound) {
  HktAttention layer(HktAttentionOptions{.d_model = kD, .causal = false});
  Randomize(*layer, 7, at::kFloat);
  const Leaks leaks = FindLeaks([&](const at::Tensor& x) { return layer(x); }, at::kFloat);
  EXPECT_EQ(leaks.values, kT * (kT - 1) / 2);
  EXPECT_EQ(leaks.gradients, kT * (kT - 1) / 2);
}

}  // namespace
}  // namespace hkt::nn
