// Both composites of hkt::attention, PyTorch's flash kernel and rows in chunks, in every type,
// against the eager T x T form in double. They are what other devices run, so they are called here
// by name: on the CPU only float64 would reach them.

#include "hkt/ops/attention_composite.h"

#include <ATen/Context.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/ops/eager_test_util.h"

namespace hkt::ops {
namespace {

// Switches PyTorch's flash kernel off, as its users do, which leaves rows in chunks.
class Flash {
 public:
  explicit Flash(bool on) { at::globalContext().setSDPUseFlash(on); }
  ~Flash() { at::globalContext().setSDPUseFlash(true); }
};

struct Case {
  AttentionShape shape;
  bool causal = true;
  std::optional<at::Tensor> lengths = std::nullopt;
  std::optional<double> scale = std::nullopt;
};

struct Results {
  at::Tensor out, lse;
  std::vector<at::Tensor> gradients;
};

Results Call(const Case& c, const AttentionInputs& x, const at::Tensor& d_out) {
  Results results;
  std::tie(results.out, results.lse) = AttentionForwardComposite(
      x.queries, x.keys, x.value, c.shape.s, c.scale, c.causal, c.lengths);
  results.gradients =
      AttentionBackwardComposite(d_out, x.queries, x.keys, x.value, results.out, results.lse,
                                 c.shape.s, c.scale, c.causal, c.lengths);
  return results;
}

void ExpectEqualsEager(const Case& c, const AttentionInputs& source, at::ScalarType type) {
  const AttentionShape& shape = c.shape;
  const AttentionInputs inputs = source.To(type);
  const AttentionInputs exact = inputs.To(at::kDouble).RequireGrad();
  const at::Tensor want =
      EagerAttention(exact.queries, exact.keys, exact.value, shape.s, c.scale, c.causal, c.lengths);
  const at::Tensor d_out = at::randn(want.sizes(), at::kDouble).to(type);
  const auto d_want = torch::autograd::grad({want}, exact.All(), {d_out.to(at::kDouble)});
  const testing::AttentionBound bound =
      BoundOf(shape, exact, d_out, testing::UnitRoundoff(type == at::kDouble ? 53 : 24), c.scale);
  for (bool flash : {true, false}) {
    SCOPED_TRACE(Concat("flash=", flash, " B=", shape.B, " H=", shape.H, " Hkv=", shape.Hkv, " T=",
                        shape.T, " D=", shape.D, " Dv=", shape.Dv, " L=", shape.L, " s=", shape.s,
                        " causal=", c.causal, " lengths=", c.lengths.has_value(), " ", type));
    const Flash chosen(flash);
    const Results got = Call(c, inputs, d_out);
    EXPECT_TRUE(got.out.transpose(1, 2).is_contiguous());
    const testing::Comparison forward = Compare(got.out, want, bound.Output());
    EXPECT_TRUE(forward) << forward.message;
    const double groups = static_cast<double>(shape.H) / static_cast<double>(shape.Hkv);
    for (int64_t i = 0; i < 2 * shape.L + 1; ++i) {
      const bool query = i < shape.L, value = i == 2 * shape.L;
      const double rows = std::pow(shape.s, i % shape.L);
      const double limit = value   ? bound.d_value(groups)
                           : query ? bound.d_query(rows)
                                   : rows * bound.d_key(groups);
      EXPECT_TRUE(got.gradients[i].transpose(1, 2).is_contiguous());
      const testing::Comparison backward = Compare(got.gradients[i], d_want[i], limit);
      EXPECT_TRUE(backward) << "gradient " << i << ": " << backward.message;
    }
    const at::Tensor lse =
        EagerLogSumExp(exact.queries, exact.keys, shape.s, c.causal, c.lengths, c.scale);
    const at::Tensor has_keys = lse.isfinite();
    EXPECT_TRUE(at::equal(got.lse.isfinite(), has_keys));
    if (has_keys.any().item<bool>()) {
      EXPECT_TRUE(
          Compare(got.lse.masked_select(has_keys), lse.masked_select(has_keys), bound.LogSumExp()));
    }
  }
}

TEST(AttentionCompositeTest, BothPathsEqualEagerForSeededRandomShapes) {
  Random random({8829, 2604});
  for (int i = 0; i < 100; ++i) {
    Case c;
    c.shape.B = random.Between(1, 3);
    c.shape.Hkv = random.Between(1, 3);
    c.shape.H = c.shape.Hkv * random.Between(1, 3);
    c.shape.T = random.Between(1, 40);
    c.shape.D = random.Between(1, 12);
    c.shape.Dv = random.Between(1, 20);
    c.shape.L = random.Between(1, 4);
    c.shape.s = random.Between(2, 5);
    c.causal = random.Below(2) == 0;
    if (random.Below(2)) {
      std::vector<int64_t> lengths;
      for (int64_t b = 0; b < c.shape.B; ++b) lengths.push_back(random.Between(0, c.shape.T));
      c.lengths = at::tensor(lengths, at::kLong);
    }
    if (random.Below(3) == 0) c.scale = random.Uniform() * 2;
    ExpectEqualsEager(c, MakeInputs(c.shape, random.Bits()),
                      random.Below(2) ? at::kFloat : at::kDouble);
  }
}

// More rows than one chunk holds: 2^22 scores, 2 x 2 x 1500 x 699 of them.
// PyTorch's flash kernel for the CPU makes NaN of them under the causal mask.
TEST(AttentionCompositeTest, ScalesThatAreNotPositive) {
  for (const double scale : {0.0, -1.5}) {
    for (const bool causal : {true, false}) {
      const Case c{.shape = {.B = 2, .H = 2, .Hkv = 1, .T = 19, .D = 4, .Dv = 5, .L = 2},
                   .causal = causal,
                   .scale = scale};
      ExpectEqualsEager(c, MakeInputs(c.shape, 5), at::kDouble);
      ExpectEqualsEager(c, MakeInputs(c.shape, 5), at::kFloat);
    }
  }
}

TEST(AttentionCompositeTest, SeveralChunksEqualEager) {
  for (bool causal : {true, false}) {
    const Case c{{.B = 2, .H = 2, .Hkv = 1, .T = 1500, .D = 2, .Dv = 3, .L = 3},
                 causal,
                 at::tensor({1500, 701}, at::kLong)};
    ExpectEqualsEager(c, MakeInputs(c.shape, 2), at::kDouble);
  }
}

TEST(AttentionCompositeTest, HalfPrecisionIsAsGoodAsPlainPyTorch) {
  const Case c{{.B = 2, .H = 2, .Hkv = 1, .T = 97, .D = 16, .Dv = 24, .L = 3}};
  for (at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const AttentionInputs inputs = MakeInputs(c.shape, 8).To(type);
    const AttentionInputs plain = inputs.To(type).RequireGrad();
    const AttentionInputs exact = inputs.To(at::kDouble).RequireGrad();
    const at::Tensor rough = EagerAttention(plain.queries, plain.keys, plain.value, 2),
                     want = EagerAttention(exact.queries, exact.keys, exact.value, 2);
    const at::Tensor d_out = at::randn(want.sizes(), at::kDouble).to(type);
    const auto low = torch::autograd::grad({rough}, plain.All(), {d_out}),
               right = torch::autograd::grad({want}, exact.All(), {d_out.to(at::kDouble)});
    const auto error = [](const at::Tensor& got, const at::Tensor& exactly) {
      return Largest(got.to(at::kDouble) - exactly);
    };
    for (bool flash : {true, false}) {
      const Flash chosen(flash);
      const Results got = Call(c, inputs, d_out);
      EXPECT_EQ(got.out.scalar_type(), type);
      EXPECT_EQ(got.lse.scalar_type(), at::kFloat);
      EXPECT_LE(error(got.out, want), 2 * error(rough, want)) << type << flash;
      for (size_t i = 0; i < right.size(); ++i) {
        EXPECT_EQ(got.gradients[i].scalar_type(), type);
        EXPECT_LE(error(got.gradients[i], right[i]), 3 * error(low[i], right[i]))
            << type << flash << i;
      }
    }
  }
}

// NaN in keys of later positions, of every level, and anything in the padding.
TEST(AttentionCompositeTest, ChunksNeverMultiplyWhatIsMasked) {
  const Flash chosen(false);
  const AttentionShape shape{.B = 1, .H = 2, .Hkv = 1, .T = 19, .D = 3, .Dv = 2, .L = 3};
  const AttentionInputs clean = MakeInputs(shape, 3, at::kFloat);
  const Case c{shape};
  const at::Tensor d_out = at::randn({1, 2, 19, 2});
  const at::Tensor want = Call(c, clean, d_out).out;
  for (int64_t t0 = 1; t0 < shape.T; ++t0) {
    AttentionInputs garbage = MakeInputs(shape, 3, at::kFloat);
    for (int64_t l = 0; l < shape.L; ++l) {
      const int64_t first = CeilDiv(t0, int64_t{1} << l);
      garbage.keys[l].slice(2, first).fill_(std::numeric_limits<double>::quiet_NaN());
    }
    garbage.value.slice(2, t0).fill_(1e30);
    EXPECT_TRUE(CompareBits(Call(c, garbage, d_out).out.slice(2, 0, t0), want.slice(2, 0, t0)));
  }
}

// One T x T matrix of one head would be 512 MiB here; a chunk has 32, and a few are alive at once.
TEST(AttentionCompositeTest, MemoryGrowsWithTNotWithItsSquare) {
  const Case c{{.H = 2, .Hkv = 1, .T = 8192, .D = 2, .Dv = 3, .L = 2}};
  const AttentionInputs inputs = MakeInputs(c.shape, 9);
  for (bool flash : {true, false}) {
    const Flash chosen(flash);
    const double before = PeakMemory();
    Call(c, inputs, inputs.value.expand({1, 2, 8192, 3}));
    EXPECT_LT(PeakMemory() - before, (flash ? 64.0 : 256.0) * (1 << 20)) << "flash " << flash;
  }
}

}  // namespace
}  // namespace hkt::ops
