// What must not change a bit of hkt::attention and its gradients: strides, padding, the future, the
// rest of the batch, the number of threads, which gradients are asked for.

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <limits>

#include "hkt/base/error.h"
#include "hkt/ops/eager_test_util.h"
#include "hkt/ops/ops.h"

namespace hkt::ops {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Kernels read whatever lies where the strides say; only the composite of float64 copies.
TEST(AttentionBitwiseTest, AnyStridesGiveTheContiguousResult) {
  const AttentionShape shape{.B = 2, .H = 3, .Hkv = 3, .T = 37, .D = 6, .Dv = 6, .L = 2};
  using Layout = std::function<at::Tensor(const at::Tensor&)>;
  const Layout as_bthd = [](const at::Tensor& x) {
    return x.transpose(1, 2).contiguous().transpose(1, 2);
  };
  const Layout as_columns = [](const at::Tensor& x) {
    return x.transpose(2, 3).contiguous().transpose(2, 3);
  };
  const Layout as_slice = [](const at::Tensor& x) {
    at::Tensor wide =
        at::full({x.size(0), x.size(1), x.size(2) * 2, x.size(3) + 3}, kNan, x.options());
    at::Tensor view = wide.slice(2, 0, x.size(2) * 2, 2).slice(3, 1, 1 + x.size(3));
    view.copy_(x);
    return view;
  };
  const Layout as_broadcast = [](const at::Tensor& x) {
    return x.slice(0, 0, 1).slice(1, 0, 1).expand(x.sizes());
  };
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble}) {
    const AttentionInputs inputs = MakeInputs(shape, 5).To(type);
    const at::Tensor d_plain = at::randn({2, 3, 37, 6}, at::kDouble).to(type);
    int number = 0;
    for (const Layout& layout : {as_bthd, as_columns, as_slice, as_broadcast}) {
      SCOPED_TRACE(Concat(type, " layout ", number++));
      AttentionInputs strided, plain;
      for (const at::Tensor& q : inputs.queries) strided.queries.push_back(layout(q).detach());
      for (const at::Tensor& k : inputs.keys) strided.keys.push_back(layout(k).detach());
      strided.value = layout(inputs.value).detach();
      for (const at::Tensor& q : strided.queries) plain.queries.push_back(q.contiguous());
      for (const at::Tensor& k : strided.keys) plain.keys.push_back(k.contiguous());
      plain.value = strided.value.contiguous();
      strided.RequireGrad();
      plain.RequireGrad();
      const at::Tensor d_out = layout(d_plain);
      ASSERT_FALSE(strided.value.is_contiguous() && d_out.is_contiguous());
      const at::Tensor got = attention(strided.queries, strided.keys, strided.value, 2);
      const at::Tensor want = attention(plain.queries, plain.keys, plain.value, 2);
      EXPECT_TRUE(CompareBits(got, want));
      const auto d_got = Grad(got, strided.All(), d_out),
                 d_want = Grad(want, plain.All(), d_out.contiguous());
      for (size_t i = 0; i < d_got.size(); ++i) EXPECT_TRUE(CompareBits(d_got[i], d_want[i])) << i;
    }
  }
}

// Whatever stands in the padding, in any input, changes no bit of the rest, forward and backward.
TEST(AttentionBitwiseTest, PaddingHoldingNanChangesNoBit) {
  const AttentionShape shape{.B = 4, .H = 4, .Hkv = 2, .T = 21, .D = 5, .Dv = 9, .L = 3};
  const std::vector<int64_t> lengths = {0, 1, 12, 21};
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    for (bool causal : {true, false}) {
      SCOPED_TRACE(Concat(type, " causal ", causal));
      std::vector<at::Tensor> outs, gradients[2];
      for (int poisoned = 0; poisoned < 2; ++poisoned) {
        AttentionInputs inputs = MakeInputs(shape, 11).To(type);
        at::Tensor d_out = at::randn({shape.B, shape.H, shape.T, shape.Dv}, at::kDouble).to(type);
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
      EXPECT_TRUE(CompareBits(outs[1], outs[0]));
      for (size_t i = 0; i < gradients[0].size(); ++i) {
        EXPECT_TRUE(CompareBits(gradients[1][i], gradients[0][i])) << "gradient " << i;
        EXPECT_EQ(Largest(gradients[1][i][0]), 0.0)
            << "a sequence without tokens has gradients of zero";
      }
      EXPECT_EQ(Largest(outs[1][0]), 0.0);
      EXPECT_EQ(Largest(outs[1][2].slice(1, 12)), 0.0);
      EXPECT_GT(Largest(outs[1][2].slice(1, 0, 12)), 0.0);
    }
  }
}

// What stands in the future is masked, not multiplied by zero: NaN in keys, huge finite values in
// V.
TEST(AttentionBitwiseTest, TheFutureChangesNoBit) {
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

// Random inputs of a head of every kind: grouped, padded, uneven.
struct Batch {
  AttentionShape shape;
  AttentionInputs inputs;
  std::vector<int64_t> lengths;
  at::Tensor d_out;

  // The output and every gradient.
  std::vector<at::Tensor> Run(bool causal) const {
    const AttentionInputs x = inputs.To(inputs.value.scalar_type()).RequireGrad();
    std::vector<at::Tensor> results = {
        attention(x.queries, x.keys, x.value, shape.s, std::nullopt, causal, Lengths(lengths))};
    const auto gradients = Grad(results[0], x.All(), d_out);
    results.insert(results.end(), gradients.begin(), gradients.end());
    return results;
  }
};

Batch MakeBatch(at::ScalarType type) {
  const AttentionShape shape{.B = 7, .H = 4, .Hkv = 2, .T = 150, .D = 12, .Dv = 20, .L = 3};
  return {shape,
          MakeInputs(shape, 21).To(type),
          {150, 0, 1, 67, 149, 128, 64},
          at::randn({7, 4, 150, 20}, at::kDouble).to(type)};
}

TEST(AttentionBitwiseTest, ASequenceAloneEqualsItselfInTheBatchBitForBit) {
  for (at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Batch batch = MakeBatch(type);
    for (bool causal : {true, false}) {
      const std::vector<at::Tensor> together = batch.Run(causal);
      for (int64_t b = 0; b < 7; ++b) {
        for (bool cut : {false, true}) {  // alone, and alone without its padding
          const int64_t T = cut ? batch.lengths[b] : batch.shape.T;
          const auto part = [&](const at::Tensor& x, int64_t l) {
            return x.slice(0, b, b + 1).slice(2, 0, LevelLength(T, 2, l)).contiguous();
          };
          Batch alone = batch;
          for (int64_t l = 0; l < 3; ++l) {
            alone.inputs.queries[l] = part(batch.inputs.queries[l], l);
            alone.inputs.keys[l] = part(batch.inputs.keys[l], l);
          }
          alone.inputs.value = part(batch.inputs.value, 0);
          alone.d_out = part(batch.d_out, 0);
          alone.lengths = {batch.lengths[b]};
          const std::vector<at::Tensor> got = alone.Run(causal);
          for (size_t i = 0; i < got.size(); ++i) {
            EXPECT_TRUE(
                CompareBits(got[i], together[i].slice(0, b, b + 1).slice(2, 0, got[i].size(2))))
                << type << " causal " << causal << " b " << b << " cut " << cut << " result " << i;
          }
        }
      }
    }
  }
}

TEST(AttentionBitwiseTest, EveryNumberOfThreadsGivesTheSameBits) {
  const int threads_before = at::get_num_threads();
  for (at::ScalarType type : {at::kFloat, at::kHalf}) {
    const Batch batch = MakeBatch(type);
    for (bool causal : {true, false}) {
      std::vector<at::Tensor> first;
      for (int threads : {1, 2, 3, 1}) {
        at::set_num_threads(threads);
        const std::vector<at::Tensor> results = batch.Run(causal);
        if (first.empty()) first = results;
        for (size_t i = 0; i < results.size(); ++i)
          EXPECT_TRUE(CompareBits(results[i], first[i])) << type << " " << threads << " " << i;
      }
    }
  }
  at::set_num_threads(threads_before);
}

// Which gradients are asked for changes none of them.
TEST(AttentionBitwiseTest, EverySubsetOfGradientsHasTheSameBits) {
  const AttentionShape shape{.B = 2, .H = 2, .Hkv = 1, .T = 9, .D = 3, .Dv = 4, .L = 2};
  for (at::ScalarType type : {at::kFloat, at::kDouble}) {
    const AttentionInputs source = MakeInputs(shape, 12).To(type);
    const at::Tensor d_out = at::randn({2, 2, 9, 4}, at::kDouble).to(type);
    std::vector<at::Tensor> all;
    for (unsigned subset = 31; subset > 0; --subset) {
      const AttentionInputs inputs = source.To(type);
      std::vector<at::Tensor> wanted;
      for (unsigned i = 0; i < 5; ++i) {
        at::Tensor input = inputs.All()[i];
        if (subset >> i & 1) wanted.push_back(input.requires_grad_(true));
      }
      const at::Tensor out = attention(inputs.queries, inputs.keys, inputs.value, 2);
      ASSERT_TRUE(out.grad_fn()) << "without it gradients are silently missing";
      const auto got = Grad(out, wanted, d_out);
      if (subset == 31) all = got;
      for (unsigned i = 0, next = 0; i < 5; ++i) {
        if (!(subset >> i & 1)) continue;
        EXPECT_TRUE(CompareBits(got[next++], all[i])) << subset << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace hkt::ops
