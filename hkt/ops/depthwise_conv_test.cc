// hkt::depthwise_conv, fused and composite, against PyTorch's conv1d in double.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>
#include <vector>

#include "hkt/base/error.h"
#include "hkt/ops/ops.h"
#include "hkt/ops/path.h"

namespace hkt::ops {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor Want(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                int64_t stride) {
  const at::Tensor padded =
      at::constant_pad_nd(x.to(at::kDouble).transpose(1, 2), {weight.size(2) - 1, 0});
  return at::conv1d(padded, weight.to(at::kDouble), bias.to(at::kDouble), at::IntArrayRef(stride),
                    at::IntArrayRef{0}, at::IntArrayRef{1}, x.size(2))
      .transpose(1, 2);
}

struct Inputs {
  at::Tensor x, weight, bias;
};

Inputs Draw(at::IntArrayRef shape, int64_t k, at::ScalarType type) {
  at::manual_seed(3);
  return {at::randn(shape, type), at::randn({shape[2], 1, k}, type), at::randn({shape[2]}, type)};
}

class Paths : public ::testing::TestWithParam<bool> {
 protected:
  Paths() { SetFusedKernels(GetParam()); }
  ~Paths() override { SetFusedKernels(true); }
};

INSTANTIATE_TEST_SUITE_P(DepthwiseConvTest, Paths, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "fused" : "composite"; });

TEST_P(Paths, EqualsConv1dAndItsGradients) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    // k products and a bias summed in float32, each at most about 3, and what is stored.
    const double unit = type == at::kDouble     ? 0x1p-53
                        : type == at::kFloat    ? 0x1p-24
                        : type == at::kBFloat16 ? 0x1p-8
                                                : 0x1p-11;
    for (const int64_t k : {1, 3, 4, 7}) {
      for (const auto& [T, stride] :
           {std::pair<int64_t, int64_t>{1, 1}, {2, 1}, {5, 2}, {130, 1}, {131, 3}}) {
        Inputs in = Draw({2, T, 20}, k, type);
        Inputs exact;
        for (const auto member : {&Inputs::x, &Inputs::weight, &Inputs::bias}) {
          exact.*member = (in.*member).to(at::kDouble).detach().requires_grad_();
          (in.*member).requires_grad_();
        }
        const at::Tensor out = depthwise_conv(in.x, in.weight, in.bias, stride);
        const at::Tensor want = Want(exact.x, exact.weight, exact.bias, stride);
        ASSERT_EQ(out.scalar_type(), type);
        ASSERT_TRUE(out.is_contiguous());
        const at::Tensor d_out = at::randn(out.sizes(), at::kDouble).to(type);
        out.backward(d_out);
        want.backward(d_out.to(at::kDouble));
        // The same sums of absolute values bound what rounding can do.
        Inputs sizes;
        for (const auto member : {&Inputs::x, &Inputs::weight, &Inputs::bias})
          sizes.*member = (exact.*member).detach().abs().requires_grad_();
        const at::Tensor largest = Want(sizes.x, sizes.weight, sizes.bias, stride);
        largest.backward(d_out.to(at::kDouble).abs());
        const auto expect = [&](const at::Tensor& got, const at::Tensor& wanted,
                                const at::Tensor& size, double terms, const char* name) {
          const at::Tensor error = (got.to(at::kDouble) - wanted).abs();
          const double sum_unit = type == at::kDouble ? 0x1p-53 : 0x1p-24;
          const at::Tensor bound = (terms + 2) * sum_unit * size + 1.01 * unit * wanted.abs() +
                                   (type == at::kHalf ? 0x1p-25 : 1e-40);
          EXPECT_TRUE(at::all(error <= bound).item<bool>())
              << name << ", k = " << k << ", T = " << T << ", " << c10::toString(type) << ": "
              << at::max(error / bound).item<double>() << " bounds";
        };
        const double taps = static_cast<double>(k), rows = static_cast<double>(2 * T);
        expect(out.detach(), want.detach(), largest.detach(), taps, "out");
        expect(in.x.grad(), exact.x.grad(), sizes.x.grad(), taps, "d_x");
        expect(in.weight.grad(), exact.weight.grad(), sizes.weight.grad(), rows, "d_weight");
        expect(in.bias.grad(), exact.bias.grad(), sizes.bias.grad(), rows, "d_bias");
      }
    }
  }
}

TEST_P(Paths, AnyStridesAndSingleWeightsBesideSixteenBits) {
  const Inputs in = Draw({3, 40, 16}, 3, at::kFloat);
  const at::Tensor want = depthwise_conv(in.x, in.weight, in.bias);
  const at::Tensor turned = in.x.permute({2, 0, 1}).contiguous().permute({1, 2, 0});
  EXPECT_TRUE(at::equal(depthwise_conv(turned, in.weight, in.bias), want));
  const at::Tensor low = in.x.to(at::kBFloat16);
  const at::Tensor out = depthwise_conv(low, in.weight, in.bias);
  EXPECT_EQ(out.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(
      at::equal(out, depthwise_conv(low.to(at::kFloat), in.weight, in.bias).to(at::kBFloat16)));
}

TEST_P(Paths, EmptyInputs) {
  for (const auto& shape : {std::vector<int64_t>{0, 4, 8}, {2, 0, 8}}) {
    Inputs in = Draw(shape, 3, at::kFloat);
    in.weight.requires_grad_();
    const at::Tensor out = depthwise_conv(in.x, in.weight, in.bias);
    EXPECT_EQ(out.sizes(), at::IntArrayRef(shape));
    out.sum().backward();
    EXPECT_EQ(in.weight.grad().abs().sum().item<float>(), 0);
  }
}

// The gradient of a function of the gradients, against conv1d's own.
TEST_P(Paths, SecondAndThirdDerivatives) {
  for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
    for (const int64_t stride : {1, 2}) {
      Inputs in = Draw({2, 7, 4}, 3, type);
      for (at::Tensor* x : {&in.x, &in.weight, &in.bias}) x->mul_(0.3);
      Inputs exact;
      for (const auto member : {&Inputs::x, &Inputs::weight, &Inputs::bias}) {
        exact.*member = (in.*member).to(at::kDouble).detach().requires_grad_();
        (in.*member).requires_grad_();
      }
      const auto penalty = [](const Inputs& of, const at::Tensor& out) {
        // Of third order in x and weight, so that each derivative depends on the others.
        const at::Tensor loss = (out * out * out).sum();
        const auto first = torch::autograd::grad({loss}, {of.x, of.weight, of.bias}, {},
                                                 std::nullopt, /*create_graph=*/true);
        const auto second =
            torch::autograd::grad({first[0].pow(2).sum() + first[1].pow(2).sum() + first[2].sum()},
                                  {of.x, of.weight}, {}, std::nullopt, /*create_graph=*/true);
        return second[0].pow(2).sum() + second[1].pow(2).sum();
      };
      penalty(in, depthwise_conv(in.x, in.weight, in.bias, stride)).backward();
      penalty(exact, Want(exact.x, exact.weight, exact.bias, stride)).backward();
      for (const auto member : {&Inputs::x, &Inputs::weight, &Inputs::bias}) {
        const at::Tensor want = (exact.*member).grad();
        const double error = ((in.*member).grad().to(at::kDouble) - want).norm().item<double>();
        // A hundred nested sums and products, of terms that are up to a thousand times their sum.
        const double bound = (type == at::kDouble ? 0x1p-53 : 0x1p-24) * 1e5;
        EXPECT_LE(error, bound * want.norm().item<double>());
        EXPECT_GT(want.norm().item<double>(), 0);
      }
    }
  }
}

TEST(DepthwiseConvTest, MisuseNamesTheArgument) {
  const Inputs good = Draw({2, 5, 4}, 3, at::kFloat);
  const auto expect = [](const Inputs& in, const char* part) {
    EXPECT_THAT([&] { depthwise_conv(in.x, in.weight, in.bias); },
                ThrowsMessage<c10::Error>(HasSubstr(part)));
  };
  expect({good.x[0], good.weight, good.bias}, "x has 2 dimensions; it must be [B, T, d]");
  expect({good.x, good.weight.squeeze(1), good.bias},
         "weight has 2 dimensions; it must be [d, 1, k]");
  expect({good.x, at::randn({5, 1, 3}), good.bias},
         "weight has size 5 in dimension 0; it must be d of x = 4");
  expect({good.x, at::randn({4, 1, 0}), good.bias}, "weight has kernel width 0");
  expect({good.x, good.weight, at::randn({3})}, "bias has size 3 in dimension 0; it must be d = 4");
  expect({good.x.to(at::kLong), good.weight, good.bias}, "x is of type int64");
  expect({good.x, good.weight.to(at::kDouble), good.bias}, "weight is of type float64");
  EXPECT_THAT(
      [&] {
        depthwise_conv_backward(at::randn({2, 6, 4}), good.x, good.weight);
      },
      ThrowsMessage<c10::Error>(HasSubstr("d_out has size 6 in dimension 1")));
}

}  // namespace
}  // namespace hkt::ops
