// hkt::downsample, fused and composite, against PyTorch's convolutions and norm in double.

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <limits>

#include "hkt/base/error.h"
#include "hkt/ops/eager_test_util.h"
#include "hkt/ops/ops.h"
#include "hkt/ops/path.h"

namespace hkt::ops {
namespace {

using ::testing::HasSubstr;

at::Tensor Call(const Conv& c, int64_t stride) {
  return downsample(c.x, c.dw, c.db, c.pw, c.pb, c.nw, c.nb, stride);
}

// The output and every gradient.
std::vector<at::Tensor> Results(const Conv& c, const at::Tensor& out, const at::Tensor& d_out) {
  std::vector<at::Tensor> results = torch::autograd::grad({out}, c.All(), {d_out});
  results.insert(results.begin(), out);
  return results;
}

class Fused {
 public:
  explicit Fused(bool on) { SetFusedKernels(on); }
  ~Fused() { SetFusedKernels(true); }
};

TEST(DownsampleTest, EqualsPaddedConvolutionNormAndGelu) {
  for (int64_t s : {1, 2, 3, 5}) {
    for (int64_t k : {1, 2, 3, 4}) {
      for (int64_t T : {1, 2, 3, 4, 5, 6, 17}) {
        const Conv c = MakeConv(2, T, 6, k, static_cast<uint64_t>(s * 100 + k * 10 + T));
        const at::Tensor got = Call(c, s), want = EagerDownsample(c, s);
        ASSERT_EQ(got.size(1), CeilDiv(T, s));
        EXPECT_TRUE(Compare(got, want, 1e-12)) << "s " << s << " k " << k << " T " << T;
        const at::Tensor d_out = at::randn(want.sizes(), at::kDouble);
        const auto d_got = torch::autograd::grad({got}, c.All(), {d_out}),
                   d_want = torch::autograd::grad({want}, c.All(), {d_out});
        for (size_t i = 0; i < d_got.size(); ++i)
          EXPECT_TRUE(Compare(d_got[i], d_want[i], 1e-11))
              << "s " << s << " k " << k << " T " << T << " " << i;
      }
    }
  }
}

// At most twice (16 bits, backward: three times) the error of plain PyTorch in the same type,
// against double; beside it what another order of summation may cost. A weight's gradient sums N
// rows: N u times the sum of their magnitudes, which is at least the largest result.
TEST(DownsampleTest, IsAsGoodAsPlainPyTorch) {
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (bool fused : {true, false}) {
      const Fused chosen(fused);
      for (int64_t s : {1, 2, 3}) {
        for (int64_t d : {6, 24, 65}) {
          SCOPED_TRACE(Concat(type, " fused ", fused, " s ", s, " d ", d));
          const Conv c = MakeConv(3, 67, d, s == 2 ? 3 : 4, static_cast<uint64_t>(d)).To(type);
          const Conv plain = c.To(type), exact = c.To(at::kDouble);
          const at::Tensor want = EagerDownsample(exact, s);
          const at::Tensor d_out = at::randn(want.sizes(), at::kDouble).to(type);
          const auto got = Results(c, Call(c, s), d_out),
                     rough = Results(plain, EagerDownsample(plain, s), d_out),
                     right = Results(exact, want, d_out.to(at::kDouble));
          for (size_t i = 0; i < got.size(); ++i) {
            const double times = type == at::kFloat || i == 0 ? 2 : 3;
            const double rows = i < 2 ? 0 : static_cast<double>(want.size(0) * want.size(1));
            const double order = rows * testing::UnitRoundoff(24) * Largest(right[i]);
            const auto error = [&](const at::Tensor& x) {
              return Largest(x.to(at::kDouble) - right[i]);
            };
            EXPECT_EQ(got[i].scalar_type(), type);
            EXPECT_LE(error(got[i]), times * error(rough[i]) + order) << i;
          }
        }
      }
    }
  }
}

TEST(DownsampleTest, SingleWeightsBesideA16BitInput) {
  for (bool fused : {true, false}) {
    const Fused chosen(fused);
    const Conv c = MakeConv(2, 33, 16, 3, 1).To(at::kBFloat16, at::kFloat);
    const Conv exact = c.To(at::kDouble);
    const at::Tensor out = Call(c, 2), want = EagerDownsample(exact, 2);
    EXPECT_EQ(out.scalar_type(), at::kBFloat16);
    EXPECT_TRUE(Compare(out, want, 0.05));  // values of about 3 with 8 bits
    // By name: autograd would cast a gradient of the wrong type.
    const c10::NoGradGuard no_grad;
    const auto gradients = downsample_backward(out, c.x, c.dw, c.db, c.pw, c.pb, c.nw, c.nb, 2);
    EXPECT_EQ(gradients[0].scalar_type(), at::kBFloat16);
    for (size_t i = 1; i < 7; ++i) EXPECT_EQ(gradients[i].scalar_type(), at::kFloat) << i;
  }
}

TEST(DownsampleTest, AnyStridesGiveTheContiguousResult) {
  using Layout = std::function<at::Tensor(const at::Tensor&)>;
  const Layout as_columns = [](const at::Tensor& x) {
    return x.transpose(1, 2).contiguous().transpose(1, 2);
  };
  const Layout as_slice = [](const at::Tensor& x) {
    at::Tensor wide = at::full({x.size(0), x.size(1) * 2, x.size(2) + 3},
                               std::numeric_limits<double>::quiet_NaN(), x.options());
    at::Tensor view = wide.slice(1, 0, x.size(1) * 2, 2).slice(2, 1, 1 + x.size(2));
    view.copy_(x);
    return view;
  };
  const Layout as_broadcast = [](const at::Tensor& x) {
    return x.slice(1, 0, 1).expand(x.sizes());
  };
  for (at::ScalarType type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const Conv source = MakeConv(2, 21, 5, 3, 2).To(type);
    const at::Tensor d_source = at::randn({2, 11, 5}, at::kDouble).to(type);
    int number = 0;
    for (const Layout& layout : {as_columns, as_slice, as_broadcast}) {
      Conv strided = source.To(type);
      strided.x = layout(strided.x.detach()).requires_grad_(true);
      Conv plain = source.To(type);
      plain.x = strided.x.detach().contiguous().requires_grad_(true);
      const at::Tensor d_out = layout(d_source);
      ASSERT_FALSE(strided.x.is_contiguous());
      const auto got = Results(strided, Call(strided, 2), d_out),
                 want = Results(plain, Call(plain, 2), d_out.contiguous());
      for (size_t i = 0; i < got.size(); ++i)
        EXPECT_TRUE(CompareBits(got[i], want[i])) << type << " layout " << number << " " << i;
      ++number;
    }
  }
}

TEST(DownsampleTest, SameBitsAloneInABatchAndWithAnyNumberOfThreads) {
  const int threads_before = at::get_num_threads();
  for (at::ScalarType type : {at::kFloat, at::kHalf}) {
    const Conv batch = MakeConv(7, 300, 32, 3, 3).To(type);
    const at::Tensor d_out = at::randn({7, 150, 32}, at::kDouble).to(type);
    std::vector<at::Tensor> first;
    for (int threads : {1, 2, 3, 1}) {
      at::set_num_threads(threads);
      const auto results = Results(batch, Call(batch, 2), d_out);
      if (first.empty()) first = results;
      for (size_t i = 0; i < results.size(); ++i)
        EXPECT_TRUE(CompareBits(results[i], first[i])) << type << " " << threads << " " << i;
    }
    for (int64_t b = 0; b < 7; ++b) {
      Conv alone = batch;
      alone.x = batch.x.detach().slice(0, b, b + 1).requires_grad_(true);
      const auto results = Results(alone, Call(alone, 2), d_out.slice(0, b, b + 1));
      for (size_t i : {0, 1})  // the output and d_x; the others sum over the batch
        EXPECT_TRUE(CompareBits(results[i], first[i].slice(0, b, b + 1))) << type << b << i;
    }
  }
  at::set_num_threads(threads_before);
}

TEST(DownsampleTest, EverySubsetOfGradientsHasTheSameBits) {
  for (at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Conv all = MakeConv(2, 9, 4, 3, 4).To(type);
    const at::Tensor d_out = at::randn({2, 5, 4}, at::kDouble).to(type);
    const auto want = Results(all, Call(all, 2), d_out);
    for (unsigned subset = 1; subset < 128; ++subset) {
      const Conv c = all.To(type);
      std::vector<at::Tensor> wanted;
      for (unsigned i = 0; i < 7; ++i) {
        at::Tensor input = c.All()[i].requires_grad_(subset >> i & 1);
        if (subset >> i & 1) wanted.push_back(input);
      }
      const at::Tensor out = Call(c, 2);
      ASSERT_TRUE(out.grad_fn()) << "without it gradients are silently missing";
      const auto got = torch::autograd::grad({out}, wanted, {d_out});
      for (unsigned i = 0, next = 0; i < 7; ++i) {
        if (!(subset >> i & 1)) continue;
        EXPECT_TRUE(CompareBits(got[next++], want[i + 1])) << subset << " " << i;
      }
    }
  }
}

TEST(DownsampleTest, EmptyInputs) {
  for (at::ScalarType type : {at::kFloat, at::kDouble}) {
    for (auto [B, T] : {std::pair<int64_t, int64_t>{0, 5}, {2, 0}}) {
      const Conv c = MakeConv(B, T, 4, 3, 1).To(type);
      const at::Tensor out = Call(c, 2);
      EXPECT_EQ(out.sizes(), (std::vector<int64_t>{B, CeilDiv(T, 2), 4}));
      for (const at::Tensor& gradient : torch::autograd::grad({out.sum()}, c.All())) {
        ASSERT_TRUE(gradient.defined());
        EXPECT_EQ(Largest(gradient), 0.0);
      }
    }
  }
}

TEST(DownsampleTest, SecondDerivativesAreRefusedNotWrong) {
  const Conv c = MakeConv(1, 5, 3, 3, 5);
  const at::Tensor y = Call(c, 2).square().sum();
  const auto twice = [&] {
    const at::Tensor first = torch::autograd::grad({y}, {c.x}, {}, true, /*create_graph=*/true)[0];
    torch::autograd::grad({first.square().sum()}, {c.pw});
  };
  EXPECT_THAT(twice, ::testing::ThrowsMessage<std::exception>(
                         HasSubstr("hkt::downsample_backward is not implemented")));
}

TEST(DownsampleTest, MisuseNamesTheArgument) {
  const Conv c = MakeConv(1, 4, 4, 3, 1);
  const auto spoilt = [&](const std::function<void(Conv&)>& spoil, int64_t stride = 2) {
    Conv copy = c;
    spoil(copy);
    return MessageOf([&] { Call(copy, stride); });
  };
  EXPECT_THAT(spoilt([](Conv&) {}, 0), HasSubstr("stride is 0"));
  EXPECT_THAT(spoilt([](Conv& x) { x.x = x.x[0]; }),
              HasSubstr("x has 2 dimensions; it must be [B, T, d]"));
  EXPECT_THAT(spoilt([](Conv& x) { x.nw = at::zeros({5}, at::kDouble); }),
              HasSubstr("norm_weight has size 5"));
  EXPECT_THAT(spoilt([](Conv& x) { x.pw = x.pw.to(at::kFloat); }),
              HasSubstr("pointwise_weight is of type float32; it must be that of x, float64"));
  EXPECT_THAT(
      spoilt([](Conv& x) { x.x = x.x.to(at::kHalf); }),
      HasSubstr("depthwise_weight is of type float64; it must be that of x, float16, or float32"));
  const auto backward = [&](const at::Tensor& d_out) {
    return MessageOf(
        [&] { downsample_backward(d_out, c.x, c.dw, c.db, c.pw, c.pb, c.nw, c.nb, 2); });
  };
  EXPECT_EQ(backward(at::zeros({1, 2, 4}, at::kDouble)), "no error");
  EXPECT_THAT(backward(at::zeros({1, 3, 4}, at::kDouble)),
              HasSubstr("d_out has size 3 in dimension 1; it must be ceil(T / stride) of x = 2"));
  EXPECT_THAT(backward(at::zeros({1, 2, 4})), HasSubstr("d_out is of type float32"));
}

}  // namespace
}  // namespace hkt::ops
