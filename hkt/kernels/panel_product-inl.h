// Register tiles of products whose operands and results all lie in panels (tile-inl.h), for
// matrices whose every dimension may be large.

#include <cstdint>

#if defined(HKT_KERNELS_PANEL_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_PANEL_PRODUCT_INL_H_
#undef HKT_KERNELS_PANEL_PRODUCT_INL_H_
#else
#define HKT_KERNELS_PANEL_PRODUCT_INL_H_
#endif

#include "hkt/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// c [kRows][kVectors] = start + A B, with A [kRows, D] in panels of `capacity` rows (from the
// tile's first row), B [D, kVectors] rows of one panel and `start` [kVectors], the same for every
// row; c has kPanel floats a row.
template <int kVectors>
HWY_NOINLINE void PanelTile(const float* HWY_RESTRICT a, int64_t capacity,
                            const float* HWY_RESTRICT b, int64_t D, const float* HWY_RESTRICT start,
                            float* HWY_RESTRICT c) {
  const DF d;
  VF acc[kRows][kVectors];
  HKT_UNROLL for (int64_t r = 0; r < kRows; ++r) {
    HKT_UNROLL for (int v = 0; v < kVectors; ++v) acc[r][v] = hn::Load(d, start + v * kLanes);
  }
  const auto step = [&](const float* HWY_RESTRICT left, const float* HWY_RESTRICT right) HWY_ATTR
      __attribute__((always_inline)) {
    VF bv[kVectors];
    HKT_UNROLL for (int v = 0; v < kVectors; ++v) bv[v] = hn::Load(d, right + v * kLanes);
    HKT_UNROLL for (int64_t r = 0; r < kRows; ++r) {
      const VF x = hn::Set(d, left[r * kPanel]);
      HKT_UNROLL for (int v = 0; v < kVectors; ++v) Accumulate(x, bv[v], acc[r][v]);
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
    HKT_UNROLL for (int v = 0; v < kVectors; ++v)
        hn::Store(acc[r][v], d, c + r * kPanel + v * kLanes);
  }
}

// C [n, N] = start + A B: A [n, D] and C in panels of `capacity` rows, whole register tiles of them
// (rows n … are computed too, from what A holds there); B [D, N] in panels of D rows; `start`
// padded to whole panels.
HWY_INLINE void PanelProduct(const float* HWY_RESTRICT a, int64_t capacity, int64_t n,
                             const float* HWY_RESTRICT b, int64_t D, int64_t N,
                             const float* HWY_RESTRICT start, float* HWY_RESTRICT c) {
  for (int64_t j = 0; j < N; j += kPanel) {
    const bool narrow = N - j <= kLanes;
    for (int64_t g = 0; g < n; g += kRows) {
      (narrow ? PanelTile<1> : PanelTile<2>)(a + g * kPanel, capacity, b + j * D, D, start + j,
                                             c + j * capacity + g * kPanel);
    }
  }
}

// Rows of a register tile of a transposed product: they are columns of one panel of the left
// operand, so the number divides kPanel, and with two vectors it still hides the latency of FMA.
constexpr int64_t kTransposedRows = HWY_MIN(kPanel, kRows == 8 ? 8 : 4);
static_assert(kPanel % kTransposedRows == 0);

// C [M, N] += A^T B: A [n, M] and B [n, N] in panels of `capacity` rows, C in panels of ldc >= M
// rows, rounded up to kTransposedRows.
HWY_INLINE void TransposedPanelProduct(const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                                       int64_t capacity, int64_t n, int64_t M, int64_t N,
                                       int64_t ldc, float* HWY_RESTRICT c) {
  for (int64_t j = 0; j < N; j += kPanel) {
    const bool narrow = N - j <= kLanes;
    for (int64_t i = 0; i < M; i += kTransposedRows) {
      (narrow
           ? TransposedProductTile<1, kTransposedRows, kPanel>
           : TransposedProductTile<2, kTransposedRows, kPanel>)(a + i / kPanel * kPanel * capacity +
                                                                    i % kPanel,
                                                                b + j * capacity, n,
                                                                c + j * ldc + i * kPanel);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
