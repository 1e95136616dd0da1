// hkt::multiscale_attention against the formulas of the specification, written with other
// operators.

#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <functional>
#include <limits>
#include <utility>

#include "hkt/base/error.h"
#include "hkt/ops/eager_test_util.h"
#include "hkt/ops/ops.h"
#include "hkt/ops/repeat.h"

namespace hkt::ops {
namespace {

using ::testing::HasSubstr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Head {
  AttentionShape shape;
  AttentionInputs inputs;
  at::Tensor level_logits, gate_logits;
  std::vector<at::Tensor> branches;

  at::Tensor Call(bool hybrid, double score_gain = 1, bool causal = true,
                  const std::optional<at::Tensor>& lengths = {}) const {
    return multiscale_attention(inputs.queries, inputs.keys, inputs.value, level_logits,
                                hybrid ? std::optional(gate_logits) : std::nullopt,
                                hybrid ? at::TensorList(branches) : at::TensorList(), shape.s,
                                std::nullopt, score_gain, causal, lengths);
  }
  std::vector<at::Tensor> All(bool hybrid) const {
    std::vector<at::Tensor> all = inputs.All();
    all.push_back(level_logits);
    if (hybrid) {
      all.push_back(gate_logits);
      all.insert(all.end(), branches.begin(), branches.end());
    }
    return all;
  }
};

Head MakeHead(const AttentionShape& shape, uint64_t seed) {
  Head head{shape, MakeInputs(shape, seed), {}, {}, {}};
  head.level_logits = at::randn({shape.H, shape.L}, at::kDouble);
  head.gate_logits = at::randn({shape.H, shape.L}, at::kDouble);
  for (int64_t l = 0; l < shape.L; ++l) {
    head.branches.push_back(
        at::randn({shape.B, shape.H, LevelLength(shape.T, shape.s, l), shape.Dv}, at::kDouble));
  }
  for (at::Tensor& tensor : head.All(true)) tensor.requires_grad_(true);
  return head;
}

constexpr AttentionShape kShape{.B = 2, .H = 4, .Hkv = 2, .T = 11, .D = 3, .Dv = 5, .L = 3, .s = 2};

// The formula of the specification, quotients and all, in double.
at::Tensor ByTheFormula(const Head& head, bool hybrid, double score_gain, bool causal,
                        const std::optional<at::Tensor>& lengths) {
  const AttentionShape& shape = head.shape;
  const at::Tensor lambda = at::softmax(head.level_logits, 1);
  const at::Tensor beta = hybrid ? at::sigmoid(head.gate_logits) : at::ones_like(lambda);
  const at::Tensor bbar = (lambda * beta).sum(1, true);
  const at::Tensor weights = lambda * beta / bbar * score_gain;
  const auto column = [](const at::Tensor& x, int64_t l) {
    return x.select(1, l).unsqueeze(1).unsqueeze(2);
  };
  std::vector<at::Tensor> queries;
  for (int64_t l = 0; l < shape.L; ++l)
    queries.push_back(head.inputs.queries[static_cast<size_t>(l)] * column(weights, l));
  at::Tensor out = EagerAttention(queries, head.inputs.keys, head.inputs.value, shape.s,
                                  std::nullopt, causal, lengths) *
                   column(bbar, 0);
  if (hybrid) {
    for (int64_t l = 0; l < shape.L; ++l) {
      const at::Tensor cell = at::arange(shape.T, at::kLong).div(int64_t{1} << l, "floor");
      out = out + head.branches[static_cast<size_t>(l)].index_select(2, cell) *
                      column(lambda * (1 - beta), l);
    }
  }
  if (lengths)
    out = at::where(at::arange(shape.T).lt(lengths->unsqueeze(1)).unsqueeze(1).unsqueeze(3), out,
                    0.0);
  return out;
}

TEST(MultiscaleTest, EqualsTheFormulaWithEveryGradient) {
  const std::optional<at::Tensor> no_lengths, some_lengths = at::tensor({11, 4}, at::kLong);
  for (bool hybrid : {false, true}) {
    for (bool causal : {false, true}) {
      for (double gain : {1.0, 1.7}) {
        for (const auto& [lengths, L] : {std::pair{no_lengths, int64_t{3}},
                                         {some_lengths, 3},
                                         {no_lengths, 1},
                                         {some_lengths, 1}}) {
          SCOPED_TRACE(Concat("hybrid ", hybrid, " causal ", causal, " gain ", gain, " lengths ",
                              lengths.has_value(), " L ", L));
          AttentionShape shape = kShape;
          shape.L = L;
          const Head head = MakeHead(shape, 1);
          const at::Tensor got = head.Call(hybrid, gain, causal, lengths),
                           want = ByTheFormula(head, hybrid, gain, causal, lengths);
          EXPECT_TRUE(Compare(got, want, 1e-13)) << Compare(got, want, 1e-13).message;
          const at::Tensor d_out = at::randn(got.sizes(), at::kDouble);
          const std::vector<at::Tensor> inputs = head.All(hybrid);
          const auto d_got = torch::autograd::grad({got}, inputs, {d_out}),
                     d_want = torch::autograd::grad({want}, inputs, {d_out});
          for (size_t i = 0; i < inputs.size(); ++i) {
            if (L == 1 && !hybrid && inputs[i].is_same(head.level_logits)) {
              EXPECT_TRUE(at::equal(d_got[i], at::zeros_like(head.level_logits)));  // not missing
              continue;
            }
            const testing::Comparison same = Compare(d_got[i], d_want[i], 1e-11);
            EXPECT_TRUE(same) << i << ": " << same.message;
          }
        }
      }
    }
  }
}

// A central difference, independent of any derivative formula: lambda and gates as well as the
// rest.
TEST(MultiscaleTest, GradientsEqualDifferences) {
  const Head head =
      MakeHead({.B = 1, .H = 2, .Hkv = 1, .T = 7, .D = 2, .Dv = 2, .L = 3, .s = 2}, 2);
  const at::Tensor d_out = at::randn({1, 2, 7, 2}, at::kDouble);
  const auto loss = [&] { return (head.Call(true, 1.3) * d_out).sum(); };
  const std::vector<at::Tensor> inputs = head.All(true);
  const auto gradients = torch::autograd::grad({loss()}, inputs);
  c10::NoGradGuard no_grad;
  constexpr double kStep = 1e-5;  // error of the difference: step^2 times a third derivative, and
                                  // 1e-16 / step from rounding
  for (size_t i = 0; i < inputs.size(); ++i) {
    at::Tensor flat = inputs[i].detach().view(-1);
    for (int64_t j = 0; j < flat.numel(); ++j) {
      const double x = flat[j].item<double>();
      flat[j] = x + kStep;
      const double up = loss().item<double>();
      flat[j] = x - kStep;
      const double down = loss().item<double>();
      flat[j] = x;
      const double difference = (up - down) / (2 * kStep),
                   gradient = gradients[i].reshape({-1})[j].item<double>();
      EXPECT_TRUE(std::abs(difference - gradient) <= 1e-8 * (1 + std::abs(gradient)))
          << i << " " << j << " " << difference << " " << gradient;
    }
  }
}

TEST(MultiscaleTest, SaturatedLogitsAreFiniteAndExact) {
  for (double gate : {-800.0, -40.0, 40.0, 800.0}) {
    Head head = MakeHead(kShape, 3);
    head.gate_logits = at::full({4, 3}, gate, at::kDouble).requires_grad_(true);
    const at::Tensor out = head.Call(true);
    ASSERT_TRUE(out.isfinite().all().item<bool>()) << gate;
    for (const at::Tensor& gradient : torch::autograd::grad({out.sum()}, head.All(true))) {
      EXPECT_TRUE(gradient.isfinite().all().item<bool>()) << gate;
    }
    if (gate == 40.0) {
      EXPECT_TRUE(Compare(out, head.Call(false), 1e-14)) << "open gates are plain fusion";
    }
    if (gate == -800.0) {  // closed gates leave the branches alone
      const at::Tensor lambda = at::softmax(head.level_logits, 1);
      at::Tensor want = at::zeros_like(out);
      for (int64_t l = 0; l < 3; ++l) {
        const at::Tensor cell = at::arange(11, at::kLong).div(int64_t{1} << l, "floor");
        want = want + head.branches[static_cast<size_t>(l)].index_select(2, cell) *
                          lambda.select(1, l).unsqueeze(1).unsqueeze(2);
      }
      EXPECT_TRUE(Compare(out, want, 1e-14));
    }
  }
  Head head = MakeHead(kShape, 4);
  head.level_logits =
      at::tensor({0.0, -200.0, -200.0}, at::kDouble).repeat({4, 1}).requires_grad_(true);
  const at::Tensor level0 =
      attention({head.inputs.queries[0]}, {head.inputs.keys[0]}, head.inputs.value, 2);
  EXPECT_TRUE(Compare(head.Call(false), level0, 1e-14)) << "one level alone";
}

TEST(MultiscaleTest, PaddingHoldingNanChangesNoBit) {
  const at::Tensor lengths = at::tensor({0, 6}, at::kLong);
  for (bool hybrid : {false, true}) {
    std::vector<at::Tensor> outs;
    std::vector<std::vector<at::Tensor>> gradients;
    for (bool poisoned : {false, true}) {
      Head head = MakeHead(kShape, 5);
      at::Tensor d_out = at::randn({2, 4, 11, 5}, at::kDouble);
      if (poisoned) {
        c10::NoGradGuard no_grad;
        for (int64_t b : {0, 1}) {
          const int64_t n = b ? 6 : 0;
          for (size_t l = 0; l < 3; ++l) {
            const int64_t first = CeilDiv(n, int64_t{1} << l);
            for (at::Tensor x : {head.inputs.queries[l], head.inputs.keys[l], head.branches[l]})
              x[b].slice(1, first).fill_(kNan);
          }
          head.inputs.value[b].slice(1, n).fill_(kNan);
          d_out[b].slice(1, n).fill_(kNan);
        }
      }
      outs.push_back(head.Call(hybrid, 1, true, lengths));
      gradients.push_back(torch::autograd::grad({outs.back()}, head.All(hybrid), {d_out}));
    }
    EXPECT_TRUE(CompareBits(outs[1], outs[0])) << hybrid;
    for (size_t i = 0; i < gradients[0].size(); ++i)
      EXPECT_TRUE(CompareBits(gradients[1][i], gradients[0][i])) << hybrid << " " << i;
    EXPECT_EQ(Largest(outs[0][0]), 0.0);
  }
}

TEST(MultiscaleTest, LambdaIsComputedInSinglePrecisionForHalfInputs) {
  Head head = MakeHead(kShape, 6);
  Head low = head;
  low.inputs = head.inputs.To(at::kBFloat16);
  low.level_logits = head.level_logits.detach().to(at::kFloat);
  const at::Tensor weights = at::softmax(low.level_logits, 1);
  std::vector<at::Tensor> queries;  // the product in fp32, rounded once
  for (int64_t l = 0; l < 3; ++l) {
    const at::Tensor q = low.inputs.queries[static_cast<size_t>(l)].to(at::kFloat);
    queries.push_back((q * weights.select(1, l).unsqueeze(1).unsqueeze(2)).to(at::kBFloat16));
  }
  EXPECT_TRUE(
      CompareBits(low.Call(false), attention(queries, low.inputs.keys, low.inputs.value, 2)));
}

// Under autocast products are in bf16, norms, softmax and lambda in fp32, and every gradient has
// its parameter's type.
TEST(MultiscaleTest, AutocastCastsInsideAndKeepsGradientsInSinglePrecision) {
  const auto single = [](const at::Tensor& x) {
    return x.detach().to(at::kFloat).requires_grad_(true);
  };
  const Conv exact = MakeConv(2, 12, 6, 3, 1);
  const Conv c{single(exact.x),  single(exact.dw), single(exact.db), single(exact.pw),
               single(exact.pb), single(exact.nw), single(exact.nb)};
  const at::Tensor want =
      downsample(exact.x, exact.dw, exact.db, exact.pw, exact.pb, exact.nw, exact.nb, 2);
  at::autocast::set_autocast_enabled(at::kCPU, true);
  // A bf16 input meets fp32 weights, as behind a bf16 product.
  const at::Tensor got = downsample(c.x.to(at::kBFloat16), c.dw, c.db, c.pw, c.pb, c.nw, c.nb, 2);
  const at::Tensor heads = at::linear(c.x, c.pw).view({2, 12, 2, 3}).transpose(1, 2);
  const at::Tensor level_logits = at::zeros({2, 1}).requires_grad_(true);
  const at::Tensor mixed = multiscale_attention({heads}, {heads}, heads, level_logits, {}, {}, 2);
  at::autocast::clear_cache();
  at::autocast::set_autocast_enabled(at::kCPU, false);
  EXPECT_EQ(heads.scalar_type(), at::kBFloat16);
  EXPECT_EQ(mixed.scalar_type(), at::kBFloat16);
  EXPECT_LT(Largest(got.to(at::kDouble) - want), 0.1);  // values of about 3 with 8 bits
  std::vector<at::Tensor> inputs = c.All();
  inputs.push_back(level_logits);
  for (const at::Tensor& gradient :
       torch::autograd::grad({got.to(at::kFloat).sum() + mixed.to(at::kFloat).sum()}, inputs)) {
    EXPECT_EQ(gradient.scalar_type(), at::kFloat);
    EXPECT_TRUE(gradient.isfinite().all().item<bool>());
  }
}

TEST(MultiscaleTest, MisuseNamesTheArgument) {
  Head head = MakeHead(kShape, 7);
  const auto spoilt = [&](const std::function<void(Head&)>& spoil, bool hybrid = true) {
    Head copy = head;
    spoil(copy);
    return MessageOf([&] { copy.Call(hybrid); });
  };
  EXPECT_THAT(spoilt([](Head& h) {
                h.level_logits = at::zeros({3, 3});
              }),
              HasSubstr("level_logits has size 3 in dimension 0; it must be H"));
  EXPECT_THAT(spoilt([](Head& h) {
                h.gate_logits = at::zeros({4, 2});
              }),
              HasSubstr("gate_logits has size 2 in dimension 1; it must be L"));
  EXPECT_THAT(spoilt([](Head& h) { h.branches.pop_back(); }),
              HasSubstr("branches holds 2 tensors; with gate_logits it must hold one a level, 3"));
  EXPECT_THAT(spoilt([](Head& h) { h.branches[1] = h.branches[0]; }),
              HasSubstr("branches[1] has size 11 in dimension 2"));
  EXPECT_THAT(MessageOf([&] {
                multiscale_attention(head.inputs.queries, head.inputs.keys, head.inputs.value,
                                     head.level_logits, std::nullopt, head.branches, 2);
              }),
              HasSubstr("it must be empty without gate_logits"));
}

}  // namespace
}  // namespace hkt::ops
