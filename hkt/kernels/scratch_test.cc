#include "hkt/kernels/scratch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <thread>

#include "hkt/kernels/levels.h"
#include "hkt/kernels/targets.h"

namespace hkt::kernels {
namespace {

TEST(ScratchTest, LayoutGivesCacheLines) {
  Layout layout;
  EXPECT_EQ(layout.Take(1), 0);
  EXPECT_EQ(layout.Take(17), 16);
  EXPECT_EQ(layout.Take(0), 48);
  EXPECT_EQ(layout.Take(16), 48);
  EXPECT_EQ(layout.floats(), 64);
}

TEST(ScratchTest, MemoryIsAlignedKeptAndGivenBack) {
  float* first = nullptr;
  {
    const ScratchUse use(1000);
    first = use.data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
    first[999] = 1;
  }
  {
    const ScratchUse again(500);
    EXPECT_EQ(again.data(), first) << "the same memory, as it is large enough";
  }
  const ScratchUse large(kScratchKept / 4 + 1);
  large.data()[kScratchKept / 4] = 1;
}

TEST(ScratchTest, AUseInsideAnotherHasItsOwnMemory) {
  const ScratchUse outer(100);
  outer.data()[0] = 1;
  {
    const ScratchUse inner(100);
    EXPECT_NE(inner.data(), outer.data());
    inner.data()[0] = 2;
    ReleaseScratch();  // what is in use stays
  }
  EXPECT_EQ(outer.data()[0], 1);
  std::thread([&] {
    const ScratchUse other(100);
    EXPECT_NE(other.data(), outer.data());
  }).join();
}

TEST(ScratchTest, TooMuchIsBadAlloc) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer ends a program that asks for too much";
#else
  EXPECT_THROW(ScratchUse(std::numeric_limits<int64_t>::max() / 16), std::bad_alloc);
  const ScratchUse use(10);  // and the next is as ever
  use.data()[9] = 1;
#endif
}

TEST(ScratchTest, PoisonIsNan) {
  float data[3] = {1, 2, 3};
  SetScratchPoison(false);
  MaybePoison(data, 3);
  EXPECT_EQ(data[2], 3);
  SetScratchPoison(true);
  MaybePoison(data, 2);
  SetScratchPoison(false);
  EXPECT_TRUE(std::isnan(data[0]) && std::isnan(data[1]));
  EXPECT_EQ(data[2], 3);
}

// Positions under a range of tokens, counted one by one, for tiles that start anywhere.
TEST(LevelsTest, RangesOfPositions) {
  for (const int64_t stride : {2, 3, 7, 1000}) {
    for (int L = 1; L <= 9; ++L) {
      AttentionParams params;
      params.L = L;
      params.stride = stride;
      const Levels levels = LevelsOf(params, 96);
      EXPECT_EQ(levels.pairs, L == 1 || (stride == 2 && L <= 6)) << "96 = 3 * 2^5";
      for (int64_t first = 0; first < 400; first += levels.pairs ? 96 : 37) {
        for (const int64_t n : {1, 2, 31, 96}) {
          int64_t step = 1;
          for (int l = 0; l<L; ++l, step = step>(int64_t{1} << 40) / stride ? int64_t{1} << 40
                                                                            : step * stride) {
            int64_t count = 0, last = -1;
            for (int64_t token = first; token < first + n; ++token) {
              count += token / step != last;
              last = token / step;
            }
            EXPECT_EQ(levels.First(l, first), first / step);
            EXPECT_EQ(levels.Count(l, first, n), count);
            EXPECT_GE(levels.Most(l, n), count);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hkt::kernels
