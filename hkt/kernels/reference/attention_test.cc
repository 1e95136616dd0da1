// The reference itself: against numbers worked out by hand, and its gradients against differences.

#include "hkt/kernels/reference/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/testing/compare.h"

namespace hkt::kernels::reference {
namespace {

using testing::Compare;
using testing::CompareBits;
using testing::Comparison;
using Numbers = std::vector<double>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kRounding = 1e-14;  // a few dozen roundings of numbers below 10

void ExpectNear(const Numbers& got, const Numbers& want, const std::string& what) {
  const Comparison same = Compare(got, want, kRounding);
  EXPECT_TRUE(same) << what << ": " << same.message;
}

Numbers Times(double factor, Numbers numbers) {
  for (double& x : numbers) x *= factor;
  return numbers;
}

void FillRandom(Numbers& numbers, size_t size, Random& random) {
  numbers.resize(size);
  for (double& x : numbers) x = 2 * random.Uniform() - 1;
}

void FillRandom(Attention& a, Random& random) {
  a.queries.resize(a.L);
  a.keys.resize(a.L);
  for (int64_t l = 0; l < a.L; ++l) {
    const int64_t Tl = LevelLength(a.T, a.stride, l);
    FillRandom(a.queries[l], a.B * a.H * Tl * a.D, random);
    FillRandom(a.keys[l], a.B * a.Hkv * Tl * a.D, random);
  }
  FillRandom(a.value, a.B * a.Hkv * a.T * a.Dv, random);
}

// The example of docs/hkt-attention.md. Its scale log 2 makes every exp(S) a power of two.
Attention Example() {
  Attention a;
  a.T = 4;
  a.L = 2;
  a.scale = std::log(2.0);
  a.queries = {{1, 0, 1, 1}, {2, 1}};
  a.keys = {{0, 1, -1, 1}, {1, 2}};
  a.value = {1, 2, 3, 4};
  return a;
}
const Numbers kExampleDOut = {1, 2, 4, 4};

// Every number that the page prints. Whoever changes one changes the page.
TEST(AttentionReferenceTest, TheNumbersOfTheDocumentation) {
  constexpr double x = -std::numeric_limits<double>::infinity();
  const double log2 = std::log(2.0);
  const Attention a = Example();
  const AttentionMatrices m = Matrices(a, kExampleDOut, 0, 0);
  const Numbers S0 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, -1, 0, 0, 1, -1, 1}, S1 = {2, 0, 1, 2},
                S = {2, x, x, x, 2, 2, x, x, 1, 2, 1, x, 1, 2, 1, 3};
  ExpectNear(m.level_scores[0], Times(log2, S0), "S^(0)");
  ExpectNear(m.level_scores[1], Times(log2, S1), "S^(1)");
  for (size_t i = 0; i < S.size(); ++i) {
    if (S[i] == x)
      EXPECT_EQ(m.scores[i], x) << "S " << i;
    else
      EXPECT_NEAR(m.scores[i], log2 * S[i], kRounding) << "S " << i;
  }
  ExpectNear(m.weights, {1, 0, 0, 0, 0.5, 0.5, 0, 0, 0.25, 0.5, 0.25, 0, 0.125, 0.25, 0.125, 0.5},
             "P");

  const AttentionOutput output = AttentionForward(a);
  ExpectNear(output.out, {1, 1.5, 2, 3}, "out");
  ExpectNear(output.lse, Times(log2, {2, 3, 3, 4}), "lse");

  ExpectNear(m.d_weights, {1, 0, 0, 0, 2, 4, 0, 0, 4, 8, 12, 0, 4, 8, 12, 16}, "dP");
  Numbers delta;
  for (int64_t i = 0; i < 4; ++i) delta.push_back(output.out[i] * kExampleDOut[i]);
  ExpectNear(delta, {1, 3, 8, 12}, "delta");
  ExpectNear(m.d_scores, {0, 0, 0, 0, -0.5, 0.5, 0, 0, -1, 0, 1, 0, -1, -1, 0, 2}, "dS");
  ExpectNear(m.d_level_scores[0], m.d_scores, "dS^(0)");
  ExpectNear(m.d_level_scores[1], {0, 0, -3, 3}, "dS^(1)");
  const AttentionGradients d = AttentionBackward(a, kExampleDOut);
  ExpectNear(d.value, {3.5, 4, 1.5, 2}, "d_v");
  ExpectNear(d.queries[0], Times(log2, {0, 0.5, -1, 1}), "d_q^(0)");
  ExpectNear(d.keys[0], Times(log2, {-2, -1, 1, 2}), "d_k^(0)");
  ExpectNear(d.queries[1], Times(log2, {0, 3}), "d_q^(1)");
  ExpectNear(d.keys[1], Times(log2, {-3, 3}), "d_k^(1)");
}

// Bidirectional, two query heads on one key head, T = 3 not a multiple of s: the last cell is
// short.
TEST(AttentionReferenceTest, BidirectionalGroupedHeadsByHand) {
  Attention a;
  a.H = 2;
  a.T = 3;
  a.L = 2;
  a.Dv = 2;
  a.causal = false;
  a.scale = std::log(2.0);
  a.queries = {{1, 0, 0, /*head 1*/ 0, 0, 1}, {0, 0, /*head 1*/ 1, 1}};
  a.keys = {{1, 0, 0}, {0, 1}};
  a.value = {4, 1, 8, 2, 16, 3};
  // Head 0 sees level 0 only: row 0 has weights 2 1 1, the others are equal. Head 1: the third key
  // weighs twice the others (cell 1 of level 1), in row 2 the first as well (level 0).
  const Numbers want = {8,  1.75, 28.0 / 3, 2,    28.0 / 3, 2,   // head 0
                        11, 2.25, 11,       2.25, 48.0 / 5, 2};  // head 1: rows 1 1 2, 1 1 2, 2 1 2
  const AttentionOutput output = AttentionForward(a);
  ExpectNear(output.out, want, "out");
  ExpectNear(
      output.lse,
      {std::log(4.0), std::log(3.0), std::log(3.0), std::log(4.0), std::log(4.0), std::log(5.0)},
      "lse");
}

// With one token out is its value, so that H = 4 rows tell which of Hkv = 2 heads each has read.
TEST(AttentionReferenceTest, NeighbouringQueryHeadsShareAKeyHead) {
  Attention a;
  a.H = 4;
  a.Hkv = 2;
  a.queries = {{1, 1, 1, 1}};
  a.keys = {{1, 1}};
  a.value = {5, 7};
  ExpectNear(AttentionForward(a).out, {5, 5, 7, 7}, "out");
  ExpectNear(AttentionBackward(a, {1, 2, 3, 4}).value, {3, 7}, "d_v");
}

TEST(AttentionReferenceTest, OneTokenReturnsItsValue) {
  Random random({1});
  Attention a;
  a.L = 3;
  a.D = 2;
  a.Dv = 3;
  FillRandom(a, random);
  ExpectNear(AttentionForward(a).out, a.value, "out");
  const AttentionGradients d = AttentionBackward(a, {1, 2, 3});
  ExpectNear(d.value, {1, 2, 3}, "d_v");
  for (int64_t l = 0; l < a.L; ++l) {
    ExpectNear(d.queries[l], {0, 0}, "d_q");
    ExpectNear(d.keys[l], {0, 0}, "d_k");
  }
}

// Every gradient of L(x) = sum(out * d_out) against (L(x + h) - L(x - h)) / 2h. With h = 1e-5 the
// difference is off by h^2 |L'''| / 6 and by 1e-16 |L| / h, both below 1e-9 for numbers of order 1.
TEST(AttentionReferenceTest, GradientsAreThoseOfDifferences) {
  constexpr double h = 1e-5;
  Random random({2});
  for (const bool causal : {true, false}) {
    for (const bool cut : {true, false}) {
      for (const int64_t s : {2, 3}) {
        SCOPED_TRACE(Concat("causal=", causal, " cut=", cut, " s=", s));
        Attention a{.B = 2, .H = 4, .Hkv = 2, .T = 7, .D = 2, .Dv = 3, .L = 3, .stride = s};
        a.scale = 0.8;
        a.causal = causal;
        if (cut) a.lengths = {5, 7};
        FillRandom(a, random);
        Numbers d_out;
        FillRandom(d_out, a.B * a.H * a.T * a.Dv, random);
        const auto loss = [&] {
          const Numbers out = AttentionForward(a).out;
          double sum = 0;
          for (size_t i = 0; i < out.size(); ++i) sum += out[i] * d_out[i];
          return sum;
        };
        const auto differences = [&](Numbers& input) {
          Numbers d;
          for (double& x : input) {
            const double at = x;
            x = at + h;
            const double above = loss();
            x = at - h;
            d.push_back((above - loss()) / (2 * h));
            x = at;
          }
          return d;
        };
        const AttentionGradients d = AttentionBackward(a, d_out);
        const auto expect = [&](const Numbers& got, Numbers& input, const char* what) {
          const Comparison same = Compare(got, differences(input), 1e-8);
          EXPECT_TRUE(same) << what << ": " << same.message;
        };
        for (int64_t l = 0; l < a.L; ++l) {
          expect(d.queries[l], a.queries[l], "d_q");
          expect(d.keys[l], a.keys[l], "d_k");
        }
        expect(d.value, a.value, "d_v");
      }
    }
  }
}

// Rows and cells at or behind the length hold NaN; what comes out is bit for bit that of the same
// sequence without them, and exactly 0 (minus infinity) behind it.
TEST(AttentionReferenceTest, PaddingIsNeverRead) {
  for (const bool causal : {true, false}) {
    for (int64_t n = 0; n <= 7; ++n) {
      Random random({3});
      Attention whole{.T = 7, .D = 2, .Dv = 2, .L = 3};
      whole.causal = causal;
      whole.lengths = {n};
      FillRandom(whole, random);
      Numbers d_out;
      FillRandom(d_out, whole.T * whole.Dv, random);
      Attention cut = whole;
      cut.T = n;
      cut.lengths.clear();
      const auto cut_and_poison = [](Numbers& short_one, Numbers& long_one, int64_t size) {
        short_one.resize(size);
        for (size_t i = size; i < long_one.size(); ++i) long_one[i] = kNan;
      };
      for (int64_t l = 0; l < whole.L; ++l) {
        const int64_t size = LevelLength(n, whole.stride, l) * whole.D;
        cut_and_poison(cut.queries[l], whole.queries[l], size);
        cut_and_poison(cut.keys[l], whole.keys[l], size);
      }
      Numbers cut_d_out = d_out;
      cut_and_poison(cut.value, whole.value, n * whole.Dv);
      cut_and_poison(cut_d_out, d_out, n * whole.Dv);

      const auto expect = [&](const Numbers& got, Numbers want, double behind, const char* what) {
        want.resize(got.size(), behind);
        EXPECT_TRUE(CompareBits(got, want)) << what << " causal=" << causal << " n=" << n;
      };
      const AttentionOutput got = AttentionForward(whole), want = AttentionForward(cut);
      expect(got.out, want.out, 0.0, "out");
      expect(got.lse, want.lse, -std::numeric_limits<double>::infinity(), "lse");
      const AttentionGradients d = AttentionBackward(whole, d_out),
                               d_want = AttentionBackward(cut, cut_d_out);
      for (int64_t l = 0; l < whole.L; ++l) {
        expect(d.queries[l], d_want.queries[l], 0.0, "d_q");
        expect(d.keys[l], d_want.keys[l], 0.0, "d_k");
      }
      expect(d.value, d_want.value, 0.0, "d_v");
    }
  }
}

TEST(AttentionReferenceTest, MaskedKeysAreNeverRead) {
  Random random({4});
  Attention a{.T = 9, .D = 2, .L = 3};
  FillRandom(a, random);
  const AttentionOutput want = AttentionForward(a);
  for (int64_t t = 0; t < a.T; ++t) {  // everything in the future of row t
    Attention poisoned = a;
    int64_t step = 1;
    for (int64_t l = 0; l < a.L; ++l, step *= a.stride) {
      for (size_t i = (t / step + 1) * a.D; i < a.keys[l].size(); ++i) poisoned.keys[l][i] = kNan;
    }
    for (int64_t j = t + 1; j < a.T; ++j) poisoned.value[j] = kNan;
    const AttentionOutput got = AttentionForward(poisoned);
    for (int64_t i = 0; i <= t; ++i) {
      EXPECT_EQ(got.out[i], want.out[i]) << i << " " << t;
      EXPECT_EQ(got.lse[i], want.lse[i]) << i << " " << t;
    }
  }
}

TEST(AttentionReferenceTest, LengthsAreCutToTheRange) {
  Random random({5});
  Attention a{.B = 2, .T = 3, .lengths = {0, 3}};
  FillRandom(a, random);
  const Numbers want = AttentionForward(a).out;
  a.lengths = {-2, 9};
  EXPECT_TRUE(CompareBits(AttentionForward(a).out, want));
}

}  // namespace
}  // namespace hkt::kernels::reference
