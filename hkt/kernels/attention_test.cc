// The attention kernels against the reference in double, forward and backward, on every SIMD
// target: sizes, layouts, types. What they must not read is in attention_edge_test.cc, what must be
// the same bit for bit in attention_bitwise_test.cc.

#include "hkt/kernels/attention.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iterator>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/kernels/attention_test_util.h"

namespace hkt::kernels {
namespace {

using testing::AttentionShape;
using testing::Element;
using testing::kLayouts;
using testing::kOutputLayouts;
using testing::Layout;

TEST(AttentionKernelTest, EveryShortLengthStrideAndNumberOfLevels) {
  for (const int64_t s : {2, 3, 4, 5}) {
    for (int64_t L = 1; L <= 4; ++L) {
      for (int64_t T = 1; T <= 40; ++T) {
        AttentionCase c{.shape = {.T = T, .D = 3, .Dv = 2, .L = L, .s = s}};
        c.seed = T;
        if (!EqualsReference(c)) return;
        c.causal = false;
        c.lengths = {T - T / 3};
        if (!EqualsReference(c)) return;
      }
    }
  }
}

// Around the ends of tiles (about a hundred rows, two hundred keys; whichever the kernels choose)
// and of cells: 97 and 193 are prime, so the last cell of every level is cut off.
TEST(AttentionKernelTest, LengthsAroundTheEndsOfTiles) {
  for (const int64_t s : {2, 3, 5}) {
    for (const int64_t T : testing::TailLengths(s, {64, 96, 128, 192, 256})) {
      AttentionCase c{.shape = {.T = T, .D = 4, .Dv = 3, .L = s == 2 ? 3 : 2, .s = s}};
      c.seed = T;
      if (T > 300 && s > 2) continue;
      if (!EqualsReference(c)) return;
      c.causal = false;
      if (T > 260) continue;
      if (!EqualsReference(c)) return;
    }
  }
}

// Lengths that end within a tile, at its end and one behind it, in a longer tensor.
TEST(AttentionKernelTest, LengthsWithinAndAtTheEndsOfTiles) {
  for (const bool causal : {true, false}) {
    AttentionCase c{.shape = {.B = 7, .T = 260, .D = 4, .Dv = 4, .L = 3}};
    c.causal = causal;
    c.lengths = {0, 1, 95, 97, 129, 193, 256};
    if (!EqualsReference(c)) return;
  }
}

TEST(AttentionKernelTest, EveryHeadWidth) {
  for (const int64_t D : testing::kHeadWidths) {
    for (const int64_t Dv : {D, int64_t{5}, D + 7}) {
      const AttentionCase c{
          .shape = {.H = 2, .Hkv = D % 2 ? 1 : 2, .T = 37, .D = D, .Dv = Dv, .L = 2}};
      if (!EqualsReference(c)) return;
    }
  }
  for (const int64_t Dv : testing::kHeadWidths) {
    const AttentionCase c{.shape = {.T = 21, .D = 4, .Dv = Dv, .L = 3}, .causal = false};
    if (!EqualsReference(c)) return;
  }
  // Wide heads over several tiles, which may be narrower there.
  EqualsReference({.shape = {.T = 201, .D = 64, .Dv = 64, .L = 3}});
  EqualsReference({.shape = {.T = 133, .D = 128, .Dv = 256, .L = 3}});
  for (const int64_t s : {2, 3}) {
    for (const bool causal : {true, false}) {
      EqualsReference({.shape = {.T = 290, .D = 3, .Dv = 130, .L = 2, .s = s}, .causal = causal});
      EqualsReference({.shape = {.T = 270, .D = 136, .Dv = 3, .L = 2, .s = s}, .causal = causal});
    }
  }
}

// So many heads that their packed copies and sums are made in several waves.
TEST(AttentionKernelTest, ManyHeads) {
  for (const Element element : {Element::kFloat32, Element::kBFloat16}) {
    AttentionCase c{.shape = {.B = 20, .H = 20, .Hkv = 20, .T = 3, .D = 250, .Dv = 250, .L = 6},
                    .element = element};
    for (int64_t b = 0; b < c.shape.B; ++b) c.lengths.push_back(3 - b % 4);
    if (!EqualsReference(c)) return;
  }
}

TEST(AttentionKernelTest, GroupedHeads) {
  for (const auto& [H, Hkv] : {std::pair<int64_t, int64_t>{2, 1}, {4, 2}, {6, 2}, {8, 1}, {3, 3}}) {
    for (const int64_t T : {9, 130}) {
      const AttentionCase c{.shape = {.B = 2, .H = H, .Hkv = Hkv, .T = T, .D = 4, .Dv = 4, .L = 3},
                            .lengths = {T, T - 4}};
      if (!EqualsReference(c)) return;
    }
  }
}

TEST(AttentionKernelTest, EveryLayoutOfEveryOperand) {
  const AttentionShape shape{.B = 2, .H = 4, .Hkv = 2, .T = 35, .D = 20, .Dv = 9, .L = 3};
  for (const Element element : {Element::kFloat32, Element::kBFloat16}) {
    for (size_t operand = 0; operand < 4; ++operand) {
      for (const Layout layout : kLayouts) {
        AttentionCase c{.shape = shape, .element = element};
        c.layouts[operand] = layout;
        if (!EqualsReference(c)) return;
      }
      for (int i = 0; i < kOutputLayouts; ++i) {
        AttentionCase c{.shape = shape, .lengths = {35, 18}, .element = element};
        c.out_layouts[operand] = kLayouts[i];
        if (!EqualsReference(c)) return;
      }
    }
  }
  // What modules call with: [B, T, H, D] memory everywhere.
  AttentionCase c{.shape = shape};
  c.layouts = c.out_layouts = std::vector<Layout>(4, Layout::kTransposed);
  c.shape.T = 131;
  EqualsReference(c);
}

TEST(AttentionKernelTest, SixteenBitTypes) {
  for (const Element element : {Element::kBFloat16, Element::kFloat16}) {
    for (const int64_t T : {1, 5, 40, 97, 200}) {
      for (const int64_t D : {3, 16, 59}) {
        const AttentionCase c{.shape = {.H = 2, .Hkv = 1, .T = T, .D = D, .Dv = D + 1, .L = 3},
                              .causal = T != 40,
                              .element = element};
        if (!EqualsReference(c)) return;
      }
    }
  }
}

TEST(AttentionKernelTest, ManyLevelsAndLargeStrides) {
  for (const int64_t s : {2, 7, 100, 1000}) {
    for (const int64_t L : {2, 5, 8, 16}) {
      for (const int64_t T : {1, 2, 13, 66, 101}) {
        // 1000^15 does not fit in 64 bits; the levels from 1 on are one cell.
        const AttentionCase c{.shape = {.T = T, .D = 2, .Dv = 2, .L = L, .s = s},
                              .causal = T != 13};
        if (!EqualsReference(c)) return;
      }
    }
  }
  EqualsReference({.shape = {.T = 150, .D = 2, .Dv = 2, .L = kMaxLevels, .s = 2}});
  EqualsReference(
      {.shape = {.T = 5, .D = 2, .Dv = 2, .L = 3, .s = int64_t{1} << 40}, .lengths = {4}});
}

// At s = 2 tiles begin with a position of every level up to some level, 5 with tiles of 96; then
// not.
TEST(AttentionKernelTest, LevelsThatOutgrowTiles) {
  for (const int64_t L : {5, 6, 7, 9}) {
    for (const int64_t T : {95, 97, 193, 255, 257, 300}) {
      AttentionCase c{.shape = {.T = T, .D = 2, .Dv = 2, .L = L}};
      if (!EqualsReference(c)) return;
      c.causal = false;
      c.lengths = {T - 31};
      if (!EqualsReference(c)) return;
    }
  }
}

TEST(AttentionKernelTest, AnyScale) {
  for (const float scale : {0.0F, -0.7F, 3.0F, 1e-20F}) {
    for (const bool causal : {true, false}) {
      const AttentionCase c{
          .shape = {.T = 45, .D = 5, .Dv = 5, .L = 2}, .causal = causal, .scale = scale};
      if (!EqualsReference(c)) return;
    }
  }
}

TEST(AttentionKernelTest, LengthsAreCutToTheRange) {
  EqualsReference({.shape = {.B = 3, .T = 10, .D = 2, .Dv = 2, .L = 2}, .lengths = {-5, 11, 4}});
}

TEST(AttentionKernelTest, NothingToDo) {
  for (const AttentionShape& shape :
       {AttentionShape{.B = 0, .H = 2, .Hkv = 1, .T = 5, .D = 3, .Dv = 4, .L = 2},
        AttentionShape{.B = 2, .H = 2, .Hkv = 1, .T = 0, .D = 3, .Dv = 4, .L = 2},
        AttentionShape{.B = 2, .H = 0, .Hkv = 0, .T = 5, .D = 3, .Dv = 4, .L = 2}}) {
    for (const bool lengths : {false, true}) {
      AttentionCase c{.shape = shape};
      if (lengths) c.lengths.assign(shape.B, 3);
      const AttentionTensors x = MakeTensors(c);
      ForEachTargetAndPoison([&] {
        for (const Part& part : RunKernels(c, x)) EXPECT_TRUE(part.values.empty()) << part.name;
      });
    }
  }
}

// Keys that no query reads have gradients of zero, not none.
TEST(AttentionKernelTest, NoQueriesGiveZeros) {
  for (const int64_t s : {2, 3}) {
    const AttentionCase c{
        .shape = {.B = 2, .H = 0, .Hkv = 2, .T = 200, .D = 3, .Dv = 4, .L = 2, .s = s}};
    const AttentionTensors x = MakeTensors(c);
    ForEachTargetAndPoison([&] {
      int64_t zeros = 0;
      for (const Part& part : RunKernels(c, x)) {
        for (const double value : part.values) {
          ASSERT_EQ(value, 0) << part.name;
          ++zeros;
        }
      }
      ASSERT_EQ(zeros, 2 * 2 * (200 * (3 + 4) + (s == 2 ? 100 : 67) * 3));
    });
  }
}

// 200 cases in which everything is drawn. A failure's line begins with HKT_CASE=<number>
// HKT_TARGET=<name>: with both in the environment this program runs that case alone.
TEST(AttentionKernelTest, SeededRandomCases) {
  const char* only = std::getenv("HKT_CASE");
  for (uint64_t i = 0; i < 200; ++i) {
    if (only != nullptr && std::to_string(i) != only) continue;
    Random random({2604, 8829, i});
    AttentionCase c{.shape = testing::RandomAttentionShape(random, 140)};
    c.causal = random.Below(3) != 0;
    for (int64_t b = 0; random.Below(2) && b < c.shape.B; ++b)
      c.lengths.push_back(random.Between(0, c.shape.T));
    c.lengths.resize(c.lengths.empty() ? 0 : c.shape.B, c.shape.T);
    if (random.Below(3) == 0) c.scale = static_cast<float>(4 * random.Uniform() - 1);
    constexpr Element kElements[] = {Element::kFloat32, Element::kFloat32, Element::kBFloat16,
                                     Element::kFloat16};
    c.element = kElements[random.Below(4)];
    for (Layout& layout : c.layouts) layout = kLayouts[random.Below(std::size(kLayouts))];
    for (Layout& layout : c.out_layouts) layout = kLayouts[random.Below(kOutputLayouts)];
    c.guard = random.Below(2) ? 0 : testing::Operand::kGuard;
    c.seed = random.Bits();
    if (!EqualsReference(c, Concat("HKT_CASE=", i, " "))) return;
  }
}

}  // namespace
}  // namespace hkt::kernels
