// hkt::attention against the eager T x T form in double, forward and backward, on the shapes and
// inputs that broke others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <fstream>
#include <functional>
#include <limits>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/ops/eager_test_util.h"
#include "hkt/ops/ops.h"

namespace hkt::ops {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<at::Tensor> Grad(const at::Tensor& out, const std::vector<at::Tensor>& inputs,
                             const at::Tensor& d_out) {
  return torch::autograd::grad({out}, inputs, {d_out});
}

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

at::Tensor Lengths(std::vector<int64_t> values) { return at::tensor(values, at::kLong); }

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
        AttentionShape{.B = 2, .H = 0, .Hkv = 0, .T = 5, .D = 3, .Dv = 4, .L = 2}}) {
    for (bool causal : {true, false}) {
      const AttentionInputs inputs = MakeInputs(shape, 1).RequireGrad();
      const at::Tensor out =
          attention(inputs.queries, inputs.keys, inputs.value, 2, std::nullopt, causal);
      EXPECT_EQ(out.sizes(), (std::vector<int64_t>{shape.B, shape.H, shape.T, shape.Dv}));
      for (const at::Tensor& gradient : Grad(out, inputs.All(), at::ones_like(out)))
        EXPECT_TRUE(gradient.defined());
    }
  }
}

TEST(AttentionTest, AnyStridesGiveTheContiguousResult) {
  const AttentionShape shape{.B = 2, .H = 3, .Hkv = 3, .T = 12, .D = 6, .Dv = 6, .L = 2};
  const AttentionInputs inputs = MakeInputs(shape, 5);
  const auto as_bthd = [](const at::Tensor& x) {
    return x.transpose(1, 2).contiguous().transpose(1, 2);
  };
  const auto as_slice = [](const at::Tensor& x) {
    at::Tensor wide =
        at::full({x.size(0), x.size(1), x.size(2) * 2, x.size(3) + 3}, kNan, x.options());
    at::Tensor view = wide.slice(2, 0, x.size(2) * 2, 2).slice(3, 1, 1 + x.size(3));
    view.copy_(x);
    return view;
  };
  const at::Tensor d_out =
      at::randn({2, 3, 12, 6}, at::kDouble).transpose(2, 3).contiguous().transpose(2, 3);
  for (const auto& layout :
       std::vector<std::function<at::Tensor(const at::Tensor&)>>{as_bthd, as_slice}) {
    AttentionInputs strided;
    for (const at::Tensor& q : inputs.queries) strided.queries.push_back(layout(q).detach());
    for (const at::Tensor& k : inputs.keys) strided.keys.push_back(layout(k).detach());
    strided.value = layout(inputs.value).detach();
    strided.RequireGrad();
    const AttentionInputs plain = inputs.To(at::kDouble).RequireGrad();
    const at::Tensor got = attention(strided.queries, strided.keys, strided.value, 2);
    const at::Tensor want = attention(plain.queries, plain.keys, plain.value, 2);
    EXPECT_TRUE(CompareBits(got, want));
    const auto d_got = Grad(got, strided.All(), d_out),
               d_want = Grad(want, plain.All(), d_out.contiguous());
    for (size_t i = 0; i < d_got.size(); ++i) EXPECT_TRUE(CompareBits(d_got[i], d_want[i])) << i;
  }
  // Broadcast: every batch and head the same tensor, of stride 0.
  AttentionInputs broadcast;
  for (const at::Tensor& q : inputs.queries)
    broadcast.queries.push_back(q.slice(0, 0, 1).slice(1, 0, 1).expand(q.sizes()));
  for (const at::Tensor& k : inputs.keys)
    broadcast.keys.push_back(k.slice(0, 0, 1).slice(1, 0, 1).expand(k.sizes()));
  broadcast.value = inputs.value.slice(0, 0, 1).slice(1, 0, 1).expand(inputs.value.sizes());
  const at::Tensor out = attention(broadcast.queries, broadcast.keys, broadcast.value, 2);
  EXPECT_TRUE(CompareBits(out[0][0], out[1][2]));
  EXPECT_TRUE(
      Compare(out, EagerAttention(broadcast.queries, broadcast.keys, broadcast.value, 2), 1e-13));
}

// Whatever stands in the padding, in any input, changes no bit of the rest, forward and backward.
TEST(AttentionTest, PaddingHoldingNanChangesNoBit) {
  const AttentionShape shape{.B = 4, .H = 4, .Hkv = 2, .T = 21, .D = 5, .Dv = 9, .L = 3};
  const std::vector<int64_t> lengths = {0, 1, 12, 21};
  for (bool causal : {true, false}) {
    std::vector<at::Tensor> outs, gradients[2];
    for (int poisoned = 0; poisoned < 2; ++poisoned) {
      AttentionInputs inputs = MakeInputs(shape, 11);
      at::Tensor d_out = at::randn({shape.B, shape.H, shape.T, shape.Dv}, at::kDouble);
      if (poisoned) {
        for (int64_t b = 0; b < shape.B; ++b) {
          const int64_t n = lengths[static_cast<size_t>(b)];
          for (int64_t l = 0; l < shape.L; ++l) {
            const int64_t first =
                CeilDiv(n, int64_t{1} << l);  // the first position that begins behind the end
            inputs.queries[l][b].slice(1, first).fill_(kNan);
            inputs.keys[l][b].slice(1, first).fill_(kNan);
          }
          inputs.value[b].slice(1, n).fill_(kNan);
          d_out[b].slice(1, n).fill_(kNan);
        }
      }
      inputs.RequireGrad();
      outs.push_back(attention(inputs.queries, inputs.keys, inputs.value, 2, std::nullopt, causal,
                               Lengths(lengths)));
      gradients[poisoned] = Grad(outs.back(), inputs.All(), d_out);
    }
    EXPECT_TRUE(CompareBits(outs[1], outs[0])) << "causal " << causal;
    for (size_t i = 0; i < gradients[0].size(); ++i) {
      EXPECT_TRUE(CompareBits(gradients[1][i], gradients[0][i]))
          << "causal " << causal << ", gradient " << i;
      EXPECT_EQ(Largest(gradients[1][i][0]), 0.0)
          << "a sequence without tokens has gradients of zero";
    }
    EXPECT_EQ(Largest(outs[1][0]), 0.0);
    EXPECT_EQ(Largest(outs[1][2].slice(1, 12)), 0.0);
    EXPECT_GT(Largest(outs[1][2].slice(1, 0, 12)), 0.0);
  }
}

// What stands in the future is masked, not multiplied by zero: NaN in keys, huge finite values in
// V.
TEST(AttentionTest, TheFutureChangesNoBit) {
  const AttentionShape shape{.H = 2, .Hkv = 2, .T = 67, .D = 4, .Dv = 4, .L = 3, .s = 2};
  const AttentionInputs clean = MakeInputs(shape, 3, at::kFloat);
  const at::Tensor want = attention(clean.queries, clean.keys, clean.value, 2);
  for (int64_t t0 = 1; t0 < shape.T; ++t0) {
    AttentionInputs garbage = MakeInputs(shape, 3, at::kFloat);
    for (int64_t l = 0; l < shape.L; ++l) {
      const int64_t first = CeilDiv(t0, int64_t{1} << l);
      garbage.queries[l].slice(2, first).fill_(kNan);
      garbage.keys[l].slice(2, first).fill_(kNan);
    }
    garbage.value.slice(2, t0).fill_(1e30);
    const at::Tensor got = attention(garbage.queries, garbage.keys, garbage.value, 2);
    const testing::Comparison same = CompareBits(got.slice(2, 0, t0), want.slice(2, 0, t0));
    ASSERT_TRUE(same) << "t0 = " << t0 << ": " << same.message;
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
  for (const at::Tensor& gradient : Grad(out, huge.All(), at::ones_like(out)))
    EXPECT_TRUE(gradient.isfinite().all().item<bool>());
  const AttentionInputs exact = huge.To(at::kDouble);
  // Logits of 1e6 make the softmax a maximum: the row's best key, if it leads by more than the
  // rounding of its score.
  EXPECT_TRUE(Compare(out, EagerAttention(exact.queries, exact.keys, exact.value, 2), 1e-2));

  AttentionInputs equal = MakeInputs(shape, 6);
  for (at::Tensor& k : equal.keys) k.zero_();
  const at::Tensor mean = equal.value.cumsum(2) / at::arange(1, 17, at::kDouble).unsqueeze(1);
  EXPECT_TRUE(Compare(attention(equal.queries, equal.keys, equal.value, 2), mean, 1e-14));
}

// Half-precision inputs: at most twice (backward three times) the error of plain PyTorch in the
// same type, against double.
TEST(AttentionTest, HalfPrecisionIsAsGoodAsPlainPyTorch) {
  for (at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const AttentionShape shape{.B = 2, .H = 2, .Hkv = 2, .T = 64, .D = 16, .Dv = 16, .L = 3};
    const AttentionInputs inputs = MakeInputs(shape, 8).To(type).RequireGrad();
    const AttentionInputs plain = inputs.To(type).RequireGrad();
    const AttentionInputs exact = inputs.To(at::kDouble).RequireGrad();
    const at::Tensor out = attention(inputs.queries, inputs.keys, inputs.value, 2);
    const at::Tensor eager = EagerAttention(plain.queries, plain.keys, plain.value, 2);
    const at::Tensor want = EagerAttention(exact.queries, exact.keys, exact.value, 2);
    const auto error = [](const at::Tensor& got, const at::Tensor& right) {
      return Largest(got.to(at::kDouble) - right);
    };
    EXPECT_LE(error(out, want), 2 * error(eager, want)) << type;
    const at::Tensor d_out = at::randn(want.sizes(), at::kDouble).to(type);
    const auto got = Grad(out, inputs.All(), d_out), low = Grad(eager, plain.All(), d_out),
               right = Grad(want, exact.All(), d_out.to(at::kDouble));
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_LE(error(got[i], right[i]), 3 * error(low[i], right[i])) << type << " " << i;
  }
}

// Largest memory of this process so far, in bytes.
double PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) * 1024;
  }
  return std::numeric_limits<double>::infinity();
}

// Which of PyTorch's kernels runs is seen in the memory: one T x T matrix would be 256 MiB here.
TEST(AttentionTest, MemoryGrowsWithTNotWithItsSquare) {
  const AttentionShape shape{.H = 2, .Hkv = 1, .T = 8192, .D = 4, .Dv = 6, .L = 3};
  for (bool masked : {false, true}) {
    const AttentionInputs inputs = MakeInputs(shape, 9, at::kFloat).RequireGrad();
    const double before = PeakMemory();
    const std::optional<at::Tensor> lengths =
        masked ? std::optional(Lengths({8000})) : std::nullopt;
    const at::Tensor out =
        attention(inputs.queries, inputs.keys, inputs.value, 2, std::nullopt, !masked, lengths);
    Grad(out, inputs.All(), at::ones_like(out));
    EXPECT_LT(PeakMemory() - before, 64.0 * (1 << 20)) << "masked " << masked;
  }
}

TEST(AttentionTest, OneTensorAsEverything) {
  const at::Tensor x = at::randn({1, 2, 9, 4}, at::kDouble).requires_grad_(true);
  const at::Tensor got = attention({x}, {x}, x, 2), want = EagerAttention({x}, {x}, x, 2);
  EXPECT_TRUE(Compare(got, want, 1e-14));
  EXPECT_TRUE(Compare(Grad(got, {x}, at::ones_like(got))[0],
                      Grad(want, {x}, at::ones_like(want))[0], 1e-13));
}

TEST(AttentionTest, SecondDerivativesAreRefusedNotWrong) {
  const at::Tensor x = at::randn({1, 1, 5, 2}, at::kDouble).requires_grad_(true);
  const at::Tensor y = attention({x}, {x}, x, 2).square().sum();
  const auto twice = [&] {
    const at::Tensor first = torch::autograd::grad({y}, {x}, {}, true, /*create_graph=*/true)[0];
    torch::autograd::grad({first.square().sum()}, {x});
  };
  EXPECT_THAT(twice, ::testing::ThrowsMessage<std::exception>(HasSubstr("is not implemented")));
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
      {[](In, int64_t& s, Len) { s = 1; }, "stride is 1; it must be at least 2"},
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
      {[](In in, int64_t&, Len) { in.value = in.value.to(at::kFloat); }, "value is of type Float"},
      {[](In in, int64_t&, Len) { in = in.To(at::kLong); }, "queries[0] is of type Long"},
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
       "lengths is of type Int"},
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

}  // namespace
}  // namespace hkt::ops
