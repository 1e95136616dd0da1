// hkt::attention against the eager T x T form in double, forward and backward, on the shapes and
// inputs that broke others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <limits>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/ops/eager_test_util.h"
#include "hkt/ops/ops.h"

namespace hkt::ops {
namespace {

using ::testing::HasSubstr;

struct Options {
  std::optional<double> scale = std::nullopt;
  bool causal = true;
  std::optional<at::Tensor> lengths = std::nullopt;
};

// Output and every gradient of the operator, computed in `type`, within the derived bound of the
// double reference.
void ExpectEqualsEager(const AttentionShape& shape, const AttentionInputs& source,
                       const Options& options, at::ScalarType type = at::kDouble) {
  SCOPED_TRACE(Concat("B=", shape.B, " H=", shape.H, " Hkv=", shape.Hkv, " T=", shape.T,
                      " D=", shape.D, " Dv=", shape.Dv, " L=", shape.L, " s=", shape.s,
                      " causal=", options.causal, " lengths=", options.lengths.has_value(),
                      " type=", c10::toString(type)));
  const AttentionInputs inputs = source.To(type).RequireGrad();
  const AttentionInputs exact = inputs.To(at::kDouble).RequireGrad();
  const at::Tensor out = attention(inputs.queries, inputs.keys, inputs.value, shape.s,
                                   options.scale, options.causal, options.lengths);
  const at::Tensor want = EagerAttention(exact.queries, exact.keys, exact.value, shape.s,
                                         options.scale, options.causal, options.lengths);
  ASSERT_EQ(out.sizes(), want.sizes());
  EXPECT_TRUE(out.transpose(1, 2).is_contiguous()) << "the output is [B, T, H, Dv] memory";
  if (out.numel() == 0) return;
  const at::Tensor d_out = at::randn(want.sizes(), at::kDouble).to(type);
  const testing::AttentionBound bound = BoundOf(
      shape, exact, d_out, testing::UnitRoundoff(type == at::kDouble ? 53 : 24), options.scale);
  const testing::Comparison forward = Compare(out, want, bound.Output());
  EXPECT_TRUE(forward) << forward.message;

  const std::vector<at::Tensor> got = Grad(out, inputs.All(), d_out);
  const std::vector<at::Tensor> expected = Grad(want, exact.All(), d_out.to(at::kDouble));
  const double groups =
      shape.Hkv == 0 ? 1 : static_cast<double>(shape.H) / static_cast<double>(shape.Hkv);
  for (int64_t i = 0; i < 2 * shape.L + 1; ++i) {
    const bool query = i < shape.L, value = i == 2 * shape.L;
    const double rows = std::pow(shape.s, i % shape.L);
    const double limit = value   ? bound.d_value(groups)
                         : query ? bound.d_query(rows)
                                 : rows * bound.d_key(groups);
    const testing::Comparison backward = Compare(got[i], expected[i], limit);
    EXPECT_TRUE(backward) << "gradient " << i << ": " << backward.message;
  }
}

TEST(AttentionTest, EqualsEagerForEveryShortLength) {
  for (int64_t s : {2, 3, 4, 5}) {
    for (int64_t L = 1; L <= 4; ++L) {
      for (int64_t T = 1; T <= 2 * s + 3; ++T) {
        const AttentionShape shape{
            .B = 2, .H = 2, .Hkv = 2, .T = T, .D = 4, .Dv = 4, .L = L, .s = s};
        const AttentionInputs inputs =
            MakeInputs(shape, static_cast<uint64_t>(s * 1000 + L * 100 + T));
        ExpectEqualsEager(shape, inputs, {});
        ExpectEqualsEager(shape, inputs, {.causal = false, .lengths = Lengths({T / 2, T})});
      }
    }
  }
}

TEST(AttentionTest, EqualsEagerAroundPowersAndPrimes) {
  for (int64_t T : {31, 32, 33, 97, 193, 257}) {
    const AttentionShape shape{.H = 2, .Hkv = 1, .T = T, .D = 8, .Dv = 8, .L = 3};
    const AttentionInputs inputs = MakeInputs(shape, static_cast<uint64_t>(T));
    for (at::ScalarType type : {at::kDouble, at::kFloat})
      ExpectEqualsEager(shape, inputs, {}, type);
    ExpectEqualsEager(shape, inputs, {.scale = 0.7, .causal = false});
  }
}

TEST(AttentionTest, EqualsEagerForEveryHeadWidthAndGrouping) {
  for (int64_t D : {1, 3, 8, 20, 40, 59, 64, 111, 128, 256}) {
    const AttentionShape shape{
        .H = 2, .Hkv = D % 2 ? 1 : 2, .T = 19, .D = D, .Dv = D % 3 ? D : D + 7, .L = 2};
    for (at::ScalarType type : {at::kFloat, at::kDouble}) {
      ExpectEqualsEager(shape, MakeInputs(shape, static_cast<uint64_t>(D)), {}, type);
    }
  }
  const AttentionShape wide_value{.B = 2, .H = 6, .Hkv = 3, .T = 13, .D = 3, .Dv = 40, .L = 3};
  ExpectEqualsEager(wide_value, MakeInputs(wide_value, 3),
                    {.causal = false, .lengths = Lengths({13, 5})});
}

TEST(AttentionTest, EqualsEagerForSeededRandomShapes) {
  Random random({2604, 8829});
  for (int i = 0; i < 200; ++i) {
    AttentionShape shape;
    shape.B = random.Between(1, 3);
    shape.Hkv = random.Between(1, 3);
    shape.H = shape.Hkv * random.Between(1, 3);
    shape.T = random.Between(1, 60);
    shape.D = random.Between(1, 24);
    shape.Dv = random.Between(1, 40);
    shape.L = random.Between(1, 5);
    shape.s = random.Between(2, 5);
    Options options{.causal = random.Below(2) == 0};
    if (random.Below(2)) {
      std::vector<int64_t> lengths;
      for (int64_t b = 0; b < shape.B; ++b) lengths.push_back(random.Between(0, shape.T));
      options.lengths = Lengths(lengths);
    }
    if (random.Below(3) == 0) options.scale = random.Uniform() * 2;
    ExpectEqualsEager(shape, MakeInputs(shape, random.Bits()), options,
                      random.Below(2) ? at::kFloat : at::kDouble);
  }
}

TEST(AttentionTest, LevelsFarBeyondTheSequenceAreOneCell) {
  const AttentionShape shape{.H = 1, .T = 10, .D = 4, .Dv = 4, .L = 4, .s = 7};
  ExpectEqualsEager(shape, MakeInputs(shape, 1), {});
  const AttentionShape deep{
      .T = 10, .D = 2, .Dv = 2, .L = 16, .s = 1024};  // s^15 does not fit in 64 bits
  const AttentionInputs inputs = MakeInputs(deep, 2).RequireGrad();
  const at::Tensor out = attention(inputs.queries, inputs.keys, inputs.value, deep.s);
  EXPECT_TRUE(
      Compare(out, attention({inputs.queries[0]}, {inputs.keys[0]}, inputs.value, 2), 1e-13));
  // Such a level adds a row constant: gradients of zero to rounding, and not missing ones.
  for (const at::Tensor& gradient :
       Grad(out, {inputs.queries[15], inputs.keys[15]}, at::ones_like(out))) {
    ASSERT_TRUE(gradient.defined());
    EXPECT_LT(Largest(gradient), 1e-13);
  }
}

TEST(AttentionTest, EmptyInputsGiveEmptyOutputsWithGradients) {
  for (const AttentionShape& shape :
       {AttentionShape{.B = 0, .H = 2, .Hkv = 2, .T = 5, .D = 3, .Dv = 4, .L = 2},
        AttentionShape{.B = 2, .H = 2, .Hkv = 1, .T = 0, .D = 3, .Dv = 4, .L = 2},
        AttentionShape{.B = 2, .H = 0, .Hkv = 0, .T = 5, .D = 3, .Dv = 4, .L = 2},
        AttentionShape{.B = 2, .H = 0, .Hkv = 2, .T = 5, .D = 3, .Dv = 4, .L = 2}}) {
    for (bool causal : {true, false}) {
      for (at::ScalarType type : {at::kFloat, at::kDouble}) {
        const AttentionInputs inputs = MakeInputs(shape, 1, type).RequireGrad();
        const at::Tensor out =
            attention(inputs.queries, inputs.keys, inputs.value, 2, std::nullopt, causal);
        EXPECT_EQ(out.sizes(), (std::vector<int64_t>{shape.B, shape.H, shape.T, shape.Dv}));
        // Keys that no query reads have gradients of zero.
        for (const at::Tensor& gradient : Grad(out, inputs.All(), at::ones_like(out)))
          EXPECT_EQ(gradient.abs().sum().item<double>(), 0);
      }
    }
  }
}

TEST(AttentionTest, HugeAndEqualLogitsAreFinite) {
  const AttentionShape shape{.H = 1, .T = 16, .D = 4, .Dv = 4, .L = 2};
  AttentionInputs huge = MakeInputs(shape, 4, at::kFloat);
  for (at::Tensor& q : huge.queries) q.mul_(1e3);
  for (at::Tensor& k : huge.keys) k.mul_(1e3);
  huge.RequireGrad();
  const at::Tensor out = attention(huge.queries, huge.keys, huge.value, 2);
  EXPECT_TRUE(out.isfinite().all().item<bool>());
  const std::vector<at::Tensor> gradients = Grad(out, huge.All(), at::ones_like(out));
  for (const at::Tensor& gradient : gradients) EXPECT_TRUE(gradient.isfinite().all().item<bool>());
  const AttentionInputs exact = huge.To(at::kDouble).RequireGrad();
  // Logits of 1e6 make the softmax a maximum: the row's best key, if it leads by more than the
  // rounding of its score.
  const at::Tensor want = EagerAttention(exact.queries, exact.keys, exact.value, 2);
  EXPECT_TRUE(Compare(out, want, 1e-2));
  EXPECT_TRUE(Compare(gradients.back(), Grad(want, {exact.value}, at::ones_like(want))[0], 1e-2));

  AttentionInputs equal = MakeInputs(shape, 6);
  for (at::Tensor& k : equal.keys) k.zero_();
  const at::Tensor mean = equal.value.cumsum(2) / at::arange(1, 17, at::kDouble).unsqueeze(1);
  EXPECT_TRUE(Compare(attention(equal.queries, equal.keys, equal.value, 2), mean, 1e-14));
}

// Half-precision inputs: at most twice (backward three times) the error of plain PyTorch in the
// same type, against double.
TEST(AttentionTest, HalfPrecisionIsAsGoodAsPlainPyTorch) {
  struct Case {
    AttentionShape shape;
    Options options;
  };
  const std::vector<Case> cases = {
      {{.B = 2, .H = 2, .Hkv = 2, .T = 64, .D = 16, .Dv = 16, .L = 3}, {}},
      {{.B = 2, .H = 4, .Hkv = 2, .T = 97, .D = 20, .Dv = 33, .L = 2, .s = 3},
       {.causal = false, .lengths = Lengths({97, 50})}},
      {{.B = 1, .H = 2, .Hkv = 1, .T = 193, .D = 64, .Dv = 64, .L = 1}, {.scale = 0.5}}};
  for (at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    for (const auto& [shape, options] : cases) {
      SCOPED_TRACE(Concat(type, " T ", shape.T));
      const AttentionInputs inputs = MakeInputs(shape, 8).To(type).RequireGrad();
      const AttentionInputs plain = inputs.To(type).RequireGrad();
      const AttentionInputs exact = inputs.To(at::kDouble).RequireGrad();
      const auto eager = [&](const AttentionInputs& x) {
        return EagerAttention(x.queries, x.keys, x.value, shape.s, options.scale, options.causal,
                              options.lengths);
      };
      const at::Tensor out = attention(inputs.queries, inputs.keys, inputs.value, shape.s,
                                       options.scale, options.causal, options.lengths);
      const at::Tensor rough = eager(plain), want = eager(exact);
      const auto error = [](const at::Tensor& got, const at::Tensor& right) {
        return Largest(got.to(at::kDouble) - right);
      };
      EXPECT_EQ(out.scalar_type(), type);
      EXPECT_LE(error(out, want), 2 * error(rough, want));
      const at::Tensor d_out = at::randn(want.sizes(), at::kDouble).to(type);
      const auto got = Grad(out, inputs.All(), d_out), low = Grad(rough, plain.All(), d_out),
                 right = Grad(want, exact.All(), d_out.to(at::kDouble));
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].scalar_type(), type);
        EXPECT_LE(error(got[i], right[i]), 3 * error(low[i], right[i])) << i;
      }
    }
  }
}

// One T x T matrix of one head would be 1 GiB here.
TEST(AttentionTest, MemoryGrowsWithTNotWithItsSquare) {
  const AttentionShape shape{.H = 2, .Hkv = 1, .T = 16384, .D = 4, .Dv = 6, .L = 3};
  for (bool masked : {false, true}) {
    const AttentionInputs inputs = MakeInputs(shape, 9, at::kFloat).RequireGrad();
    const double before = PeakMemory();
    const std::optional<at::Tensor> lengths =
        masked ? std::optional(Lengths({16000})) : std::nullopt;
    const at::Tensor out =
        attention(inputs.queries, inputs.keys, inputs.value, 2, std::nullopt, !masked, lengths);
    Grad(out, inputs.All(), at::ones_like(out));
    EXPECT_LT(PeakMemory() - before, 64.0 * (1 << 20)) << "masked " << masked;
  }
}

TEST(AttentionTest, LogSumExpIsTheEagerOne) {
  const AttentionShape shape{.B = 3, .H = 4, .Hkv = 2, .T = 37, .D = 5, .Dv = 3, .L = 3};
  const AttentionInputs source = MakeInputs(shape, 13);
  for (at::ScalarType type : {at::kFloat, at::kDouble}) {
    const AttentionInputs inputs = source.To(type), exact = inputs.To(at::kDouble);
    for (bool causal : {true, false}) {
      const at::Tensor lengths = Lengths({37, 20, 0});
      const auto [out, lse] = attention_forward(inputs.queries, inputs.keys, inputs.value, 2,
                                                std::nullopt, causal, lengths);
      EXPECT_EQ(lse.scalar_type(), type);
      EXPECT_TRUE(lse.is_contiguous());
      EXPECT_TRUE(CompareBits(out, attention(inputs.queries, inputs.keys, inputs.value, 2,
                                             std::nullopt, causal, lengths)));
      const at::Tensor want = EagerLogSumExp(exact.queries, exact.keys, 2, causal, lengths);
      const at::Tensor has_keys = want.isfinite();
      EXPECT_TRUE(at::equal(lse.isfinite(), has_keys));
      EXPECT_TRUE(lse.masked_select(has_keys.logical_not()).eq(-INFINITY).all().item<bool>());
      EXPECT_EQ(has_keys.sum().item<int64_t>(), 4 * 57);
      const testing::AttentionBound bound =
          BoundOf(shape, exact, out, testing::UnitRoundoff(type == at::kDouble ? 53 : 24));
      EXPECT_TRUE(
          Compare(lse.masked_select(has_keys), want.masked_select(has_keys), bound.LogSumExp()));
    }
  }
  const AttentionInputs low = source.To(at::kBFloat16);
  EXPECT_EQ(std::get<1>(attention_forward(low.queries, low.keys, low.value, 2)).scalar_type(),
            at::kFloat);
}

TEST(AttentionTest, OneTensorAsEverything) {
  const at::Tensor x = at::randn({1, 2, 9, 4}, at::kDouble).requires_grad_(true);
  const at::Tensor got = attention({x}, {x}, x, 2), want = EagerAttention({x}, {x}, x, 2);
  EXPECT_TRUE(Compare(got, want, 1e-14));
  EXPECT_TRUE(Compare(Grad(got, {x}, at::ones_like(got))[0],
                      Grad(want, {x}, at::ones_like(want))[0], 1e-13));
}

TEST(AttentionTest, SecondDerivativesAreRefusedNotWrong) {
  for (at::ScalarType type : {at::kDouble, at::kFloat}) {
    const at::Tensor x = at::randn({1, 1, 5, 2}, type).requires_grad_(true);
    const at::Tensor y = attention({x}, {x}, x, 2).square().sum();
    const auto twice = [&] {
      const at::Tensor first = torch::autograd::grad({y}, {x}, {}, true, /*create_graph=*/true)[0];
      torch::autograd::grad({first.square().sum()}, {x});
    };
    EXPECT_THAT(twice, ::testing::ThrowsMessage<std::exception>(
                           HasSubstr("hkt::attention_backward is not implemented")));
  }
}

TEST(AttentionTest, MisuseNamesTheArgument) {
  const AttentionShape shape{.B = 2, .H = 4, .Hkv = 2, .T = 6, .D = 3, .Dv = 3, .L = 2};
  struct Case {
    std::function<void(AttentionInputs&, int64_t&, std::optional<at::Tensor>&)> spoil;
    const char* message;
  };
  using In = AttentionInputs&;
  using Len = std::optional<at::Tensor>&;
  const std::vector<Case> cases = {
      {[](In in, int64_t&, Len) { in.queries.clear(); }, "queries is empty"},
      {[](In in, int64_t&, Len) { in.keys.pop_back(); },
       "keys holds 1 levels; it must hold as many as queries, 2"},
      {[](In, int64_t& s, Len) { s = 1; }, "stride is 1; it must be from 2 to 2^40"},
      {[](In in, int64_t&, Len) { in.queries = in.keys = std::vector(65, in.queries[1]); },
       "queries holds 65 levels; it must hold at most 64"},
      {[](In in, int64_t&, Len) {
         in.queries[1] = at::zeros({2, 4, 4, 3}, at::kDouble);
       },
       "queries[1] has size 4 in dimension 2; it must be T_l = ceil(T_{l-1} / stride) = 3"},
      {[](In in, int64_t&, Len) {
         in.keys[1] = at::zeros({2, 2, 3, 4}, at::kDouble);
       },
       "keys[1] has size 4 in dimension 3"},
      {[](In in, int64_t&, Len) {
         in.value = at::zeros({2, 3, 6, 3}, at::kDouble);
       },
       "value has Hkv = 3 heads; H = 4"},
      {[](In in, int64_t&, Len) {
         in.value = at::zeros({2, 2, 6}, at::kDouble);
       },
       "value has 3 dimensions"},
      {[](In in, int64_t&, Len) { in.value = in.value.to(at::kFloat); },
       "value is of type float32"},
      {[](In in, int64_t&, Len) { in = in.To(at::kLong); }, "queries[0] is of type int64"},
      {[](In in, int64_t&, Len) { in.keys[0] = in.keys[0].to(at::kMeta); }, "keys[0] is on meta"},
      {[](In, int64_t&, Len lengths) { lengths = Lengths({6}); }, "lengths has size 1"},
      {[](In, int64_t&, Len lengths) {
         lengths = Lengths({3, 7});
       },
       "lengths[1] is 7; it must be from 0 to T = 6"},
      {[](In, int64_t&, Len lengths) {
         lengths = Lengths({-1, 2});
       },
       "lengths[0] is -1"},
      {[](In, int64_t&, Len lengths) { lengths = at::zeros({2}, at::kInt); },
       "lengths is of type int32"},
      {[](In in, int64_t&, Len) {
         for (at::Tensor& x : in.queries) x = x.slice(3, 0, 0);
         for (at::Tensor& x : in.keys) x = x.slice(3, 0, 0);
       },
       "head width D = 0"},
  };
  for (const Case& c : cases) {
    AttentionInputs inputs = MakeInputs(shape, 1);
    int64_t stride = 2;
    std::optional<at::Tensor> lengths;
    c.spoil(inputs, stride, lengths);
    EXPECT_THAT(MessageOf([&] {
                  attention(inputs.queries, inputs.keys, inputs.value, stride, std::nullopt, true,
                            lengths);
                }),
                HasSubstr(c.message));
  }
}

TEST(AttentionTest, MisuseOfTheBackwardNamesTheArgument) {
  const AttentionShape shape{.B = 2, .H = 4, .Hkv = 2, .T = 6, .D = 3, .Dv = 5, .L = 2};
  const AttentionInputs inputs = MakeInputs(shape, 1, at::kFloat);
  const auto [out, lse] = attention_forward(inputs.queries, inputs.keys, inputs.value, 2);
  const auto message = [&, o = out, rows = lse](const at::Tensor& d_out, const at::Tensor& the_out,
                                                const at::Tensor& the_lse) {
    return MessageOf([&] {
      attention_backward(d_out, inputs.queries, inputs.keys, inputs.value, the_out, the_lse, 2,
                         std::nullopt, true, std::nullopt);
    });
  };
  EXPECT_EQ(message(out, out, lse), "no error");
  EXPECT_THAT(message(out.slice(2, 1), out, lse), HasSubstr("d_out has size 5 in dimension 2"));
  EXPECT_THAT(message(out, out.slice(3, 1), lse), HasSubstr("out has size 4 in dimension 3"));
  EXPECT_THAT(message(out.to(at::kHalf), out, lse), HasSubstr("d_out is of type float16"));
  EXPECT_THAT(message(out, out, lse.to(at::kDouble)),
              HasSubstr("lse is of type float64; it must be float32"));
  EXPECT_THAT(message(out, out, out), HasSubstr("lse has 4 dimensions; it must be [B, H, T]"));
}

}  // namespace
}  // namespace hkt::ops
