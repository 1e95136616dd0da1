#include "hkt/ops/dropout.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "hkt/ops/ops.h"

namespace hkt::ops {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

at::Tensor Seed(int64_t seed) { return at::scalar_tensor(seed, at::kLong); }

TEST(DropoutTest, KeepsTheShareAndTheMean) {
  const at::Tensor x = at::ones({100, 1000});
  const at::Tensor out = dropout(x, Seed(5), 0.25);
  const double kept = out.ne(0).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(kept, 0.75, 5 * std::sqrt(0.25 * 0.75 / 1e5));
  // 0.25 is a multiple of 2^-16.
  EXPECT_TRUE(at::all(out.eq(0).logical_or(out.eq(1 / 0.75F))).item<bool>());
}

TEST(DropoutTest, TheSeedDecidesEveryTypeAndLayout) {
  const at::Tensor x = at::randn({7, 6, 50});
  const at::Tensor out = dropout(x, Seed(9), 0.5), dropped = out.eq(0);
  EXPECT_TRUE(at::equal(out, dropout(x, Seed(9), 0.5)));
  EXPECT_FALSE(at::equal(out, dropout(x, Seed(10), 0.5)));
  for (const at::ScalarType type : {at::kDouble, at::kBFloat16, at::kHalf})
    EXPECT_TRUE(at::equal(dropout(x.to(type), Seed(9), 0.5).eq(0), dropped)) << c10::toString(type);
  const at::Tensor turned = x.permute({2, 0, 1}).contiguous().permute({1, 2, 0});
  EXPECT_TRUE(at::equal(dropout(turned, Seed(9), 0.5), out));
}

TEST(DropoutTest, ItsDerivativeIsItself) {
  const at::Tensor x = at::randn({40, 30}, at::kDouble).requires_grad_();
  const at::Tensor d_out = at::randn({40, 30}, at::kDouble).requires_grad_();
  const at::Tensor out = dropout(x, Seed(4), 0.3);
  const at::Tensor d_x = torch::autograd::grad({out}, {x}, {d_out}, true, true)[0];
  EXPECT_TRUE(at::equal(d_x, dropout(d_out, Seed(4), 0.3)));
  d_x.sum().backward();  // and again
  EXPECT_TRUE(at::equal(d_out.grad(), dropout(at::ones_like(x), Seed(4), 0.3)));
}

TEST(DropoutTest, DrawsFromTheDefaultGenerator) {
  const at::Tensor x = at::randn({1000});
  at::manual_seed(1);
  const at::Tensor first = Dropout(x, 0.5), second = Dropout(x, 0.5);
  EXPECT_FALSE(at::equal(first, second));
  at::manual_seed(1);
  EXPECT_TRUE(at::equal(Dropout(x, 0.5), first));
}

TEST(DropoutTest, ExtremesAndEmptyInputs) {
  const at::Tensor x = at::randn({50});
  EXPECT_TRUE(at::equal(dropout(x, Seed(1), 0), x));
  EXPECT_EQ(dropout(x, Seed(1), 1).abs().sum().item<float>(), 0);
  EXPECT_EQ(dropout(at::empty({0, 3}), Seed(1), 0.5).size(1), 3);
}

TEST(DropoutTest, MisuseNamesTheArgument) {
  const at::Tensor x = at::randn({4});
  const auto expect = [](const at::Tensor& input, const at::Tensor& seed, double p,
                         const char* part) {
    EXPECT_THAT([&] { dropout(input, seed, p); }, ThrowsMessage<c10::Error>(HasSubstr(part)));
  };
  expect(x.to(at::kLong), Seed(1), 0.5, "x is of type int64");
  expect(x, at::zeros({2}, at::kLong), 0.5, "seed has shape [2]");
  expect(x, at::zeros({}), 0.5, "seed is of type float32");
  expect(x, Seed(1), -0.1, "p is -0.1");
  expect(x, Seed(1), 1.5, "p is 1.5");
  expect(x, Seed(1), NAN, "p is nan");
}

}  // namespace
}  // namespace hkt::ops
