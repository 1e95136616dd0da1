// Register tiles and packing: the inner loops of every kernel of this folder, compiled once a SIMD
// target.
//
// One layout serves all: a matrix of n rows and D columns becomes *panels* of kPanel = 2 vectors,
//   panels      [ceil(D / kPanel)][capacity][kPanel]   element (i, c) at panel c / kPanel, row i,
// so that a row's piece is two aligned vectors (right operand) and neighbouring rows are a constant
// distance apart (left operand, broadcast). Transposed panels hold the columns of the transposed
// matrix instead,
//   transposed  [ceil(n / kPanel)][D][kPanel].
// Columns of the last panel behind the matrix are 0.
//
// A tile of scores has kTileLd floats a row, whatever its level.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hkt/base/dims.h"
#include "hkt/kernels/targets.h"
#include "hkt/kernels/tensor.h"

#if defined(HKT_KERNELS_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_TILE_INL_H_
#undef HKT_KERNELS_TILE_INL_H_
#else
#define HKT_KERNELS_TILE_INL_H_
#endif

#include <hwy/highway.h>

// What an array of accumulators needs to become registers.
#if HWY_COMPILER_CLANG
#define HKT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define HKT_UNROLL _Pragma("GCC unroll 16")
#endif

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
constexpr int64_t kLanes = HWY_LANES(float);
constexpr int64_t kPanel = 2 * kLanes;

// Rows of a register tile: rows x 2 accumulators, 2 vectors of the right operand and a broadcast
// must fit the registers, and there must be enough accumulators to hide the latency of FMA (4
// cycles x 2 units). AVX-512 and NEON have 32 registers, AVX2 16. Even, as two rows share a coarse
// row.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr int64_t kRows = 8;
#else
constexpr int64_t kRows = 6;
#endif

// Most keys of a tile, and the floats between its rows: a cache line more, so that rows do not fall
// into the same cache sets.
constexpr int64_t kTileCols = 256;
constexpr int64_t kTileLd = kTileCols + 16;

HWY_INLINE constexpr int64_t RoundUp(int64_t n, int64_t multiple) {
  return CeilDiv(n, multiple) * multiple;
}

// sum += x * y. g++ 12 gives the sum of an FMA another register whenever an operand dies there, and
// pays with moves and spills at the end of an unrolled loop that needs all 16 registers of AVX2:
// the instruction is named, with the sum in place, 6 to 17 % of a tile's time.
HWY_INLINE void Accumulate(VF x, VF y, VF& sum) {
#if HWY_TARGET == HWY_AVX2 && HWY_COMPILER_GCC && !HWY_COMPILER_CLANG
  asm("vfmadd231ps %2, %1, %0" : "+x"(sum.raw) : "x"(x.raw), "x"(y.raw));
#else
  sum = hn::MulAdd(x, y, sum);
#endif
}

// What a tile of scores starts from.
enum class Start { kZero, kCoarse, kTile };

// Twice the elements of `coarse`: lane i of the pair is coarse[i / 2].
HWY_INLINE void RepeatPairs(const float* HWY_RESTRICT coarse, VF& lower, VF& upper) {
  const DF d;
#if HWY_TARGET == HWY_SCALAR
  lower = upper = hn::Load(d, coarse);
#else
  HWY_ALIGN static constexpr int32_t kLower[16] = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};
  constexpr int32_t kHalf = static_cast<int32_t>(kLanes / 2);
  HWY_ALIGN static constexpr int32_t kUpper[16] = {
      kHalf,     kHalf,     kHalf + 1, kHalf + 1, kHalf + 2, kHalf + 2, kHalf + 3, kHalf + 3,
      kHalf + 4, kHalf + 4, kHalf + 5, kHalf + 5, kHalf + 6, kHalf + 6, kHalf + 7, kHalf + 7};
  const VF c = hn::LoadU(d, coarse);
  lower = hn::TableLookupLanes(c, hn::SetTableIndices(d, kLower));
  upper = hn::TableLookupLanes(c, hn::SetTableIndices(d, kUpper));
#endif
}

// tile [kRows][kPanel] = start + A B, with A [kRows, D] in panels of `capacity` rows (from the
// tile's first row) and B [D, kPanel] one transposed panel. kCoarse starts from the tile of the
// level above, every element of it standing for 2 x 2 of this one.
template <Start kStart>
HWY_NOINLINE void ScoreTile(const float* HWY_RESTRICT a, int64_t capacity,
                            const float* HWY_RESTRICT b, int64_t D,
                            const float* HWY_RESTRICT coarse, float* HWY_RESTRICT tile) {
  const DF d;
  VF acc[kRows][2];
  if constexpr (kStart == Start::kCoarse) {
    HKT_UNROLL for (int64_t r = 0; r < kRows; r += 2) {
      RepeatPairs(coarse + r / 2 * kTileLd, acc[r][0], acc[r][1]);
      acc[r + 1][0] = acc[r][0];
      acc[r + 1][1] = acc[r][1];
    }
  } else if constexpr (kStart == Start::kTile) {
    HKT_UNROLL for (int64_t r = 0; r < kRows; ++r) {
      acc[r][0] = hn::Load(d, tile + r * kTileLd);
      acc[r][1] = hn::Load(d, tile + r * kTileLd + kLanes);
    }
  } else {
    HKT_UNROLL for (int64_t r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = hn::Zero(d);
  }
  const auto step = [&](const float* HWY_RESTRICT left, const float* HWY_RESTRICT right) HWY_ATTR
      __attribute__((always_inline)) {
    const VF b0 = hn::Load(d, right), b1 = hn::Load(d, right + kLanes);
    HKT_UNROLL for (int64_t r = 0; r < kRows; ++r) {
      const VF x = hn::Set(d, left[r * kPanel]);
      Accumulate(x, b0, acc[r][0]);
      Accumulate(x, b1, acc[r][1]);
    }
  };
  for (int64_t first = 0; first < D; first += kPanel) {
    const int64_t width = HWY_MIN(kPanel, D - first);
    const float* HWY_RESTRICT left = a;
    int64_t k = 0;
    for (; k + 4 <= width; k += 4) {
      HKT_UNROLL for (int64_t u = 0; u < 4; ++u) step(left + u, b + u * kPanel);
      left += 4;
      b += 4 * kPanel;
    }
    for (; k < width; ++k, ++left, b += kPanel) step(left, b);
    a += capacity * kPanel;
  }
  HKT_UNROLL for (int64_t r = 0; r < kRows; ++r) {
    hn::Store(acc[r][0], d, tile + r * kTileLd);
    hn::Store(acc[r][1], d, tile + r * kTileLd + kLanes);
  }
}

// What the sum of a product starts from: nothing, the old sum, or the old sum times a factor a row.
enum class Sum { kNew, kAdd, kScale };

// c [kRows][kVectors] = start + A B, with A [kRows, n] a tile of scores and B [n, kVectors] rows of
// one panel. The sum runs over the keys n.
template <int kVectors, Sum kSum>
HWY_NOINLINE void ProductTile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b, int64_t n,
                              const float* HWY_RESTRICT scale, float* HWY_RESTRICT c, int64_t ldc) {
  const DF d;
  VF acc[kRows][kVectors];
  HKT_UNROLL for (int64_t r = 0; r < kRows; ++r) {
    HKT_UNROLL for (int v = 0; v < kVectors; ++v) {
      if constexpr (kSum == Sum::kNew) {
        acc[r][v] = hn::Zero(d);
      } else {
        acc[r][v] = hn::LoadU(d, c + r * ldc + v * kLanes);
        if constexpr (kSum == Sum::kScale) acc[r][v] = hn::Mul(acc[r][v], hn::Set(d, scale[r]));
      }
    }
  }
  const auto step = [&](const float* HWY_RESTRICT left, const float* HWY_RESTRICT right) HWY_ATTR
      __attribute__((always_inline)) {
    VF bv[kVectors];
    HKT_UNROLL for (int v = 0; v < kVectors; ++v) bv[v] = hn::Load(d, right + v * kLanes);
    HKT_UNROLL for (int64_t r = 0; r < kRows; ++r) {
      const VF x = hn::Set(d, left[r * kTileLd]);
      HKT_UNROLL for (int v = 0; v < kVectors; ++v) Accumulate(x, bv[v], acc[r][v]);
    }
  };
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    HKT_UNROLL for (int64_t u = 0; u < 4; ++u) step(a + u, b + u * kPanel);
    a += 4;
    b += 4 * kPanel;
  }
  for (; k < n; ++k, ++a, b += kPanel) step(a, b);
  HKT_UNROLL for (int64_t r = 0; r < kRows; ++r) {
    HKT_UNROLL for (int v = 0; v < kVectors; ++v)
        hn::StoreU(acc[r][v], d, c + r * ldc + v * kLanes);
  }
}

// c [kTileRows][kVectors] += A^T B, with A [n, kTileRows] columns of a matrix whose rows are kLdA
// floats apart (a tile of scores, a panel) and B [n, kVectors] rows of one panel; c has kPanel
// floats a row. The sum runs over the rows n.
template <int kVectors, int64_t kTileRows = kRows, int64_t kLdA = kTileLd>
HWY_NOINLINE void TransposedProductTile(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                                        int64_t n, float* HWY_RESTRICT c) {
  const DF d;
  VF acc[kTileRows][kVectors];
  HKT_UNROLL for (int64_t r = 0; r < kTileRows; ++r) {
    HKT_UNROLL for (int v = 0; v < kVectors; ++v) acc[r][v] =
        hn::Load(d, c + r * kPanel + v * kLanes);
  }
  const auto step = [&](const float* HWY_RESTRICT left, const float* HWY_RESTRICT right) HWY_ATTR
      __attribute__((always_inline)) {
    VF bv[kVectors];
    HKT_UNROLL for (int v = 0; v < kVectors; ++v) bv[v] = hn::Load(d, right + v * kLanes);
    HKT_UNROLL for (int64_t r = 0; r < kTileRows; ++r) {
      const VF x = hn::Set(d, left[r]);
      HKT_UNROLL for (int v = 0; v < kVectors; ++v) Accumulate(x, bv[v], acc[r][v]);
    }
  };
  int64_t k = 0;
  for (; k + 4 <= n; k += 4) {
    HKT_UNROLL for (int64_t u = 0; u < 4; ++u) step(a + u * kLdA, b + u * kPanel);
    a += 4 * kLdA;
    b += 4 * kPanel;
  }
  for (; k < n; ++k, a += kLdA, b += kPanel) step(a, b);
  HKT_UNROLL for (int64_t r = 0; r < kTileRows; ++r) {
    HKT_UNROLL for (int v = 0; v < kVectors; ++v)
        hn::Store(acc[r][v], d, c + r * kPanel + v * kLanes);
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
