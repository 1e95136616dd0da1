// What the attention kernels must not read, or read and select away: padding, the future, empty
// rows; and scores at the ends of what float32 holds. On every SIMD target, with scratch memory
// poisoned and not.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/kernels/attention_test_util.h"
#include "hkt/testing/compare.h"

namespace hkt::kernels {
namespace {

using testing::Element;
using testing::Operand;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Sets the elements of an operand, in the order [B, H, T, D], to value(position).
template <class Value>
void Fill(Operand& x, int64_t size, const Value& value) {
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) values.push_back(value(i));
  x.Set(values);
}

// visit(b, row, value) for every element.
template <class Visit>
void ForEachElement(const Part& part, const Visit& visit) {
  for (int64_t i = 0; i < static_cast<int64_t>(part.values.size()); ++i)
    visit(i / (part.D * part.T * part.H), i / part.D % part.T, part.values[i]);
}

// NaN (or an infinity, or a huge number) in the padding of every input changes no bit of what
// belongs to the sequence; behind it out is 0, lse minus infinity and every gradient 0.
TEST(AttentionEdgeTest, PaddingChangesNoBit) {
  struct Lengths {
    int64_t T;
    std::vector<int64_t> lengths;
  };
  for (const auto& [T, lengths] :
       {Lengths{21, {0, 1, 12, 21}}, {270, {0, 5, 97, 255}}, {40, {33, 0, 0, 40}}}) {
    for (const bool causal : {true, false}) {
      for (const Element element : {Element::kFloat32, Element::kBFloat16}) {
        const AttentionCase c{.shape = {.B = 4, .H = 4, .Hkv = 2, .T = T, .D = 5, .Dv = 9, .L = 3},
                              .causal = causal,
                              .lengths = lengths,
                              .element = element};
        SCOPED_TRACE(c.ToString());
        const AttentionTensors clean = MakeTensors(c);
        ForEachTargetAndPoison([&] {
          const Parts want = RunKernels(c, clean);
          for (const double garbage : {kNan, std::numeric_limits<double>::infinity(), 1e30}) {
            AttentionTensors poisoned = clean;
            poisoned.FillPadding(c, garbage);
            ExpectSameBits(RunKernels(c, poisoned), want);
          }
          for (const Part& part : want) {
            ForEachElement(part, [&](int64_t b, int64_t row, double got) {
              if (row < LevelLength(c.Length(b), c.shape.s, part.level))
                ASSERT_TRUE(std::isfinite(got)) << part.name << " row " << row;
              else
                ASSERT_EQ(got, part.name == "lse" ? -INFINITY : 0.0) << part.name << " row " << row;
            });
          }
        });
        if (HasFailure()) return;
      }
    }
  }
}

// Forward: keys in the future, at every level, may hold NaN; values there anything finite.
TEST(AttentionEdgeTest, TheFutureChangesNoBitOfTheForward) {
  for (const auto& [T, s] : {std::pair<int64_t, int64_t>{67, 2}, {67, 3}, {67, 4}, {300, 2}}) {
    const AttentionCase c{.shape = {.H = 2, .Hkv = 2, .T = T, .D = 4, .Dv = 4, .L = 3, .s = s}};
    const AttentionTensors clean = MakeTensors(c);
    ForEachTargetAndPoison([&] {
      const Parts want = RunKernels(c, clean);
      for (int64_t t = 0; t < T && !HasFailure(); t += T > 100 ? 31 : 1) {
        AttentionTensors x = clean;
        for (int64_t l = 0, cell = t; l < c.shape.L; ++l, cell /= s) {
          for (int64_t J = cell + 1; J < LevelLength(T, s, l); ++J) x.keys[l].FillRow(0, J, kNan);
        }
        for (int64_t j = t + 1; j < T; ++j) x.value.FillRow(0, j, 1e30);
        SCOPED_TRACE(Concat(c.ToString(), " the future of row ", t));
        const Parts got = FirstTokens(c, RunKernels(c, x), 0, t + 1),
                    right = FirstTokens(c, want, 0, t + 1);
        ExpectSameBits({got[0], got[1]}, {right[0], right[1]});
      }
    });
    if (HasFailure()) return;
  }
}

// A NaN that is read is seen: a query's in its own row, a key's in every row that sees it, and in
// the gradients of the values that these rows see. Nothing turns it into a number.
TEST(AttentionEdgeTest, NanIsNotHidden) {
  constexpr int64_t T = 300, kRow = 131, kCell = kRow / 2;
  const AttentionCase c{.shape = {.T = T, .D = 4, .Dv = 4, .L = 2}};
  const AttentionTensors clean = MakeTensors(c);
  // touched: rows of out and lse that must be NaN; all others must not.
  const auto expect = [&](const AttentionTensors& x, const std::string& what,
                          const std::function<bool(int64_t row)>& touched) {
    ForEachTargetAndPoison([&] {
      const Parts got = RunKernels(c, x);
      for (size_t p = 0; p < 2; ++p) {  // out, lse
        ForEachElement(got[p], [&](int64_t, int64_t row, double value) {
          ASSERT_EQ(std::isnan(value), touched(row)) << what << ": " << got[p].name << " " << row;
        });
      }
      const Part& d_value = got.back();
      ForEachElement(d_value, [&](int64_t, int64_t row, double value) {
        ASSERT_TRUE(row > kRow || std::isnan(value)) << what << ": d_value " << row;
      });
    });
  };
  // Whatever its lower bits: memory of all ones is a NaN, too.
  AttentionTensors x = clean;
  for (const uint32_t bits : {0x7FC00001U, 0x7FFFFFFFU, 0xFFFFFFFFU, 0x7FC00000U}) {
    x.queries[0].FillRow(0, kRow, std::bit_cast<float>(bits));
    expect(x, "query", [](int64_t row) { return row == kRow; });
  }
  x = clean;
  x.queries[1].FillRow(0, kCell, kNan);
  expect(x, "coarse query", [](int64_t row) { return row / 2 == kCell; });
  x = clean;
  x.keys[0].FillRow(0, kRow, kNan);
  expect(x, "key", [](int64_t row) { return row >= kRow; });
  x = clean;
  x.keys[1].FillRow(0, kCell, kNan);
  expect(x, "coarse key", [](int64_t row) { return row / 2 >= kCell; });
}

// Backward: with 1e30 in every input behind token t, the query gradients of the cells that end at t
// or before are those of clean inputs; with 1e30 before it, the key and value gradients of the
// cells that begin behind it.
TEST(AttentionEdgeTest, HugeNumbersElsewhereChangeNoBitOfTheBackward) {
  for (const auto& [T, s] : {std::pair<int64_t, int64_t>{67, 2}, {67, 3}, {67, 4}, {300, 2}}) {
    const AttentionCase c{.shape = {.H = 4, .Hkv = 2, .T = T, .D = 4, .Dv = 4, .L = 3, .s = s}};
    const AttentionTensors clean = MakeTensors(c);
    ForEachTargetAndPoison([&] {
      const Parts want = RunKernels(c, clean);
      for (int64_t t = 0; t < T && !HasFailure(); t += T > 100 ? 31 : 1) {
        // Cells [0, complete) of level l end at t or before; cells [next, …) begin behind it.
        const auto complete = [&](int64_t l) {
          int64_t cells = t + 1;
          for (; l > 0; --l) cells /= s;
          return cells;
        };
        const auto next = [&](int64_t l) { return LevelLength(t + 1, s, l); };
        const auto expect = [&](const AttentionTensors& x, bool future) {
          const Parts got = RunKernels(c, x);
          for (size_t p = 2; p < got.size(); ++p) {
            const bool query = got[p].name.rfind("d_queries", 0) == 0;
            if (query != future) continue;
            for (size_t i = 0; i < got[p].values.size(); ++i) {
              const int64_t row = static_cast<int64_t>(i) / got[p].D % got[p].T;
              if (future ? row >= complete(got[p].level) : row < next(got[p].level)) continue;
              ASSERT_EQ(got[p].values[i], want[p].values[i])
                  << c.ToString() << ": " << got[p].name << " row " << row << " of clean inputs "
                  << (future ? "behind " : "up to ") << t;
            }
          }
        };
        AttentionTensors x = clean;
        for (int64_t l = 0; l < c.shape.L; ++l) {
          for (int64_t cell = next(l); cell < LevelLength(T, s, l); ++cell) {
            x.queries[l].FillRow(0, cell, 1e30);
            x.keys[l].FillRow(0, cell, 1e30);
          }
        }
        for (int64_t j = t + 1; j < T; ++j) {
          x.value.FillRow(0, j, 1e30);
          x.d_out.FillRow(0, j, 1e30);
        }
        expect(x, /*future=*/true);
        // The rows before: only what the rows behind t do not read themselves.
        x = clean;
        for (int64_t l = 0; l < c.shape.L; ++l) {
          for (int64_t cell = 0; cell < complete(l); ++cell) x.queries[l].FillRow(0, cell, 1e30);
        }
        for (int64_t j = 0; j <= t; ++j) x.d_out.FillRow(0, j, 1e30);
        expect(x, /*future=*/false);
      }
    });
    if (HasFailure()) return;
  }
}

// Scores around a million: 3840 (w_j + offset) with integers w_j that are all different. The next
// best key lies 3840 below, so that the softmax is a maximum, whatever the rounding of a score.
TEST(AttentionEdgeTest, ScoresOfAMillionPickTheBestKey) {
  for (const Element element : {Element::kFloat32, Element::kBFloat16, Element::kFloat16}) {
    for (const double offset : {0.0, -256.0}) {  // scores up to 1e6, down to -1e6
      for (const bool causal : {true, false}) {
        const AttentionCase c{.shape = {.T = 250, .D = 2, .Dv = 3, .L = 2},
                              .causal = causal,
                              .scale = 1.0F,
                              .element = element};
        const auto w = [](int64_t j) { return static_cast<double>(j * 100 % 257); };
        AttentionTensors x = MakeTensors(c);
        Fill(x.queries[0], 250 * 2, [](int64_t) { return 3840.0; });
        Fill(x.keys[0], 250 * 2, [&](int64_t i) { return i % 2 ? offset : w(i / 2); });
        Fill(x.queries[1], 125 * 2, [](int64_t) { return 0.0; });
        if (!EqualsReference(c, x)) return;  // bounds grow with the scores, so more follows
        const std::vector<double> v = x.value.Get();
        ForEachTarget([&] {
          const Parts got = RunKernels(c, x);
          for (int64_t i = 0; i < 250; ++i) {
            int64_t best = 0;
            for (int64_t j = 1; j < (causal ? i + 1 : 250); ++j) best = w(j) > w(best) ? j : best;
            for (int64_t d = 0; d < 3; ++d)
              ASSERT_NEAR(got[0].values[i * 3 + d], v[best * 3 + d], 0x1p-22) << "row " << i;
          }
        });
        if (HasFailure()) return;
      }
    }
  }
}

// Weights of 1 / (i + 1), whatever the score is that all keys share.
// A single key has the weight 1 whatever its score: the backward pass must find in lse exactly the
// score that the forward pass had.
TEST(AttentionEdgeTest, ALoneKeyHasTheWeightOneAtEverySize) {
  for (const double size : {1e3, 1e6, 1e8, 1e10}) {
    const AttentionCase c{.shape = {.H = 500, .Hkv = 500, .T = 1, .D = 1, .Dv = 1}};
    AttentionTensors x = MakeTensors(c);
    Random random({7});
    Fill(x.keys[0], 500, [&](int64_t) { return size * (1 + random.Uniform()); });
    ForEachTargetAndPoison([&] {
      const Parts got = RunKernels(c, x);
      const std::vector<double> d_out = x.d_out.Get();
      for (size_t i = 0; i < 500; ++i) ASSERT_EQ(got.back().values[i], d_out[i]) << size;
      for (size_t p = 2; p + 1 < got.size(); ++p) {
        for (const double value : got[p].values) ASSERT_EQ(value, 0) << got[p].name << " " << size;
      }
    });
  }
}

TEST(AttentionEdgeTest, EqualScoresGiveTheMean) {
  for (const double key : {0.0, 1.0, -300.0}) {
    const AttentionCase c{.shape = {.T = 260, .D = 2, .Dv = 2, .L = 3}, .scale = 1.0F};
    AttentionTensors x = MakeTensors(c);
    for (int64_t l = 0; l < 3; ++l) {
      const int64_t size = 2 * LevelLength(260, 2, l);
      Fill(x.queries[l], size, [](int64_t) { return 1.0; });
      Fill(x.keys[l], size, [&](int64_t) { return key; });
    }
    if (!EqualsReference(c, x)) return;
    const std::vector<double> v = x.value.Get();
    ForEachTarget([&] {
      const Parts got = RunKernels(c, x);
      double sum = 0;
      for (int64_t i = 0; i < 260; ++i) {
        sum += v[2 * i];
        ASSERT_NEAR(got[0].values[2 * i], sum / static_cast<double>(i + 1), 270 * 0x1p-24) << i;
      }
    });
    if (HasFailure()) return;
  }
}

// exp of these scores overflows or vanishes without the running maximum, in float32 beyond 88.
TEST(AttentionEdgeTest, ScoresAroundTheLimitsOfExp) {
  for (const float scale : {30.0F, 60.0F, 88.0F, 120.0F, 400.0F}) {
    for (const int64_t T : {20, 260}) {
      const AttentionCase c{.shape = {.T = T, .D = 3, .Dv = 3, .L = 2}, .scale = scale};
      if (!EqualsReference(c)) return;
    }
  }
}

// The fusion weights are folded into the queries: one at 1 and the others at 0.
TEST(AttentionEdgeTest, OneLevelAlone) {
  for (int64_t level = 0; level < 3; ++level) {
    for (const int64_t T : {13, 130}) {
      const AttentionCase c{.shape = {.H = 2, .T = T, .D = 4, .Dv = 4, .L = 3}};
      AttentionTensors x = MakeTensors(c);
      for (int64_t l = 0; l < 3; ++l) {
        if (l != level)
          Fill(x.queries[l], 2 * 4 * LevelLength(T, 2, l), [](int64_t) { return 0.0; });
      }
      if (!EqualsReference(c, x)) return;
    }
  }
}

// Whole sequences without a key, between others.
TEST(AttentionEdgeTest, SequencesWithoutTokens) {
  for (const bool causal : {true, false}) {
    for (const int64_t T : {1, 3, 130}) {
      AttentionCase c{.shape = {.B = 4, .H = 2, .Hkv = 1, .T = T, .D = 3, .Dv = 3, .L = 3},
                      .causal = causal};
      c.lengths = {0, T, 0, (T + 1) / 2};
      if (!EqualsReference(c)) return;
      c.lengths = {0, 0, 0, 0};
      if (!EqualsReference(c)) return;
    }
  }
}

}  // namespace
}  // namespace hkt::kernels
