#include "hkt/kernels/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/kernels/convert.h"
#include "hkt/kernels/targets.h"

namespace hkt::kernels {
namespace {

constexpr uint64_t kSeed = 0x123456789ABCDEF0;

uint16_t Bits(uint64_t seed, int64_t i) {
  const uint64_t block = PhiloxBits(seed, static_cast<uint64_t>(i) / 4);
  return static_cast<uint16_t>(block >> (16 * (i % 4)));
}

std::vector<float> Values(int64_t n) {
  Random random({7, static_cast<uint64_t>(n)});
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = static_cast<float>(2 * random.Uniform() - 1);
  return values;
}

std::vector<float> Drop(const std::vector<float>& x, uint32_t threshold, uint64_t seed = kSeed,
                        const Parallel& parallel = {}) {
  std::vector<float> out(x.size() + 1, -5);
  Dropout({.n = static_cast<int64_t>(x.size()),
           .seed = seed,
           .threshold = threshold,
           .x = x.data(),
           .out = out.data()},
          parallel);
  EXPECT_EQ(out.back(), -5) << "wrote behind the end";
  out.pop_back();
  return out;
}

class DropoutTest : public ::testing::TestWithParam<std::string> {
 protected:
  DropoutTest() { SetTarget(GetParam()); }
  ~DropoutTest() override { SetTarget(""); }
};

INSTANTIATE_TEST_SUITE_P(Target, DropoutTest, ::testing::ValuesIn(UsableTargets()),
                         [](const auto& info) { return info.param; });

// The authors' known answers for philox2x32-10 (kat_vectors of Random123): counter, key -> output.
TEST(PhiloxTest, KnownAnswers) {
  EXPECT_EQ(PhiloxBits(0, 0), 0x6CD10DF2FF1DAE59);
  EXPECT_EQ(PhiloxBits(0xFFFFFFFFFFFFFFFF, 0xFFFFFFFF), 0xAB4FD7AD2C3F628B);
  // counter 243f6a88 85a308d3, key 13198a2e
  EXPECT_EQ(PhiloxBits(0x85A308D313198A2E, 0x243F6A88), 0xF62A4C12DD7CE038);
}

TEST_P(DropoutTest, EveryElementFollowsItsBits) {
  for (const int64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 4095, 4096, 4097, 40001}) {
    for (const uint32_t threshold : {0U, 1U, 6554U, 32768U, 65535U, 65536U}) {
      const std::vector<float> x = Values(n), out = Drop(x, threshold);
      const float scale = threshold < 65536 ? 65536.0F / static_cast<float>(65536 - threshold) : 0;
      for (int64_t i = 0; i < n; ++i) {
        const float want = Bits(kSeed, i) >= threshold ? x[i] * scale : 0 * x[i];
        ASSERT_EQ(out[i], want) << "n = " << n << ", threshold = " << threshold << ", i = " << i;
      }
    }
  }
}

TEST_P(DropoutTest, SameBitsForEveryNumberOfWorkers) {
  const auto threads = [](int64_t count, const std::function<void(int64_t)>& body) {
    std::vector<std::thread> running;
    for (int64_t worker = 0; worker < count; ++worker) running.emplace_back(body, worker);
    for (std::thread& thread : running) thread.join();
  };
  const std::vector<float> x = Values(200003), want = Drop(x, 6554);
  for (const int64_t workers : {2, 3, 40})
    EXPECT_EQ(Drop(x, 6554, kSeed, {workers, threads}), want);
}

TEST_P(DropoutTest, InPlaceAndSixteenBits) {
  const std::vector<float> x = Values(5003);
  std::vector<float> same = x;
  Dropout({.n = 5003, .seed = kSeed, .threshold = 20000, .x = same.data(), .out = same.data()});
  EXPECT_EQ(same, Drop(x, 20000));
  std::vector<uint16_t> low(x.size()), out(x.size());
  for (const Type type : {Type::kBFloat16, Type::kFloat16}) {
    const bool brain = type == Type::kBFloat16;
    for (size_t i = 0; i < x.size(); ++i) low[i] = brain ? ToBFloat16(x[i]) : ToFloat16(x[i]);
    Dropout({.n = 5003,
             .type = type,
             .seed = kSeed,
             .threshold = 20000,
             .x = low.data(),
             .out = out.data()});
    for (size_t i = 0; i < x.size(); ++i) {
      const float value = brain ? FromBFloat16(low[i]) : FromFloat16(low[i]);
      const float want =
          Bits(kSeed, static_cast<int64_t>(i)) >= 20000 ? value * (65536.0F / 45536.0F) : 0 * value;
      ASSERT_EQ(out[i], brain ? ToBFloat16(want) : ToFloat16(want)) << i;
    }
  }
}

TEST_P(DropoutTest, NanAndInfinityStayVisible) {
  const std::vector<float> x(64, std::numeric_limits<float>::infinity());
  for (const float value : Drop(x, 32768)) EXPECT_FALSE(std::isfinite(value));
}

// The share kept, means of neighbours, and of the same place under neighbouring seeds: within five
// standard deviations of independent draws.
TEST_P(DropoutTest, DrawsAreIndependent) {
  constexpr int64_t kN = 1 << 18;
  const std::vector<float> ones(kN, 1);
  const double p = 6554.0 / 65536;
  const auto dropped = [](float value) { return value == 0 ? 1.0 : 0.0; };
  const std::vector<float> first = Drop(ones, 6554, 41), second = Drop(ones, 6554, 42);
  const std::vector<float> third = Drop(ones, 6554, 41 + (uint64_t{1} << 32));
  double share = 0, pairs[4] = {}, seeds = 0, upper = 0;
  for (int64_t i = 0; i < kN; ++i) {
    share += dropped(first[i]);
    for (int64_t lag = 1; lag <= 4; ++lag)
      pairs[lag - 1] += dropped(first[i]) * dropped(first[(i + lag) % kN]);
    seeds += dropped(first[i]) * dropped(second[i]);
    upper += dropped(first[i]) * dropped(third[i]);
  }
  const auto expect = [&](double count, double probability) {
    const double deviation = std::sqrt(kN * probability * (1 - probability));
    EXPECT_NEAR(count, kN * probability, 5 * deviation);
  };
  expect(share, p);
  for (const double count : pairs) expect(count, p * p);
  expect(seeds, p * p);
  expect(upper, p * p);
}

TEST_P(DropoutTest, NothingToDo) { EXPECT_TRUE(Drop({}, 100).empty()); }

}  // namespace
}  // namespace hkt::kernels
