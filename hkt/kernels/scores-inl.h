// Tiles of fused scores: every level's product, each starting from the coarser one's tile.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hkt/kernels/levels.h"

#if defined(HKT_KERNELS_SCORES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_SCORES_INL_H_
#undef HKT_KERNELS_SCORES_INL_H_
#else
#define HKT_KERNELS_SCORES_INL_H_
#endif

#include "hkt/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// Tokens of a tile: queries first_row … first_row + rows - 1, keys first_col … first_col + cols - 1
// of a sequence. Under the causal mask nothing right of the diagonal is computed, but for the rest
// of its register tile.
struct TileRange {
  int64_t first_row, rows, first_col, cols;
  bool causal;
};

// Where the operands and results of a level stand: `queries` panels of `capacity` rows from the
// position of first_row, `keys` transposed panels from that of first_col, `tile` kTileLd floats a
// row, with room for whole register tiles.
struct ScoreOperands {
  const float* queries;
  int64_t capacity;
  const float* keys;
  int64_t D;
  float* tile;
};

// Scores of one level from what kStart says; `coarse` is the tile of the level above.
template <Start kStart>
HWY_INLINE void LevelScores(const Levels& levels, int l, const TileRange& range,
                            const ScoreOperands& operands, const float* coarse) {
  const int64_t row0 = levels.First(l, range.first_row), col0 = levels.First(l, range.first_col);
  const int64_t rows = levels.Count(l, range.first_row, range.rows);
  const int64_t cols = levels.Count(l, range.first_col, range.cols);
  for (int64_t p = 0; p < cols; p += kPanel) {  // the panel stays in L1 over all rows
    // Position c of a causal level is seen by positions r >= c only.
    const int64_t skipped = range.causal ? std::max<int64_t>(0, col0 + p - row0) : 0;
    if (skipped >= rows) break;
    for (int64_t g = skipped / kRows * kRows; g < rows; g += kRows) {
      ScoreTile<kStart>(operands.queries + g * kPanel, operands.capacity,
                        operands.keys + p * operands.D, operands.D,
                        kStart == Start::kCoarse ? coarse + g / 2 * kTileLd + p / 2 : nullptr,
                        operands.tile + g * kTileLd + p);
    }
  }
}

// Any stride: the tile of level l begins as the repetition of the tile of level l + 1, which stands
// for s x s of its elements but at the edges.
inline void RepeatTile(const Levels& levels, int l, const TileRange& range, const float* coarse,
                       float* tile) {
  const int64_t stride = levels.step[l + 1] / levels.step[l];
  const int64_t row0 = levels.First(l, range.first_row), col0 = levels.First(l, range.first_col);
  const int64_t coarse_row0 = levels.First(l + 1, range.first_row);
  const int64_t coarse_col0 = levels.First(l + 1, range.first_col);
  const int64_t rows = levels.Count(l, range.first_row, range.rows);
  const int64_t cols = levels.Count(l, range.first_col, range.cols);
  for (int64_t r = 0; r < rows; ++r) {
    float* target = tile + r * kTileLd;
    if (r > 0 && (row0 + r) % stride != 0) {
      std::memcpy(target, target - kTileLd, static_cast<size_t>(cols) * sizeof(float));
      continue;
    }
    const float* source = coarse + ((row0 + r) / stride - coarse_row0) * kTileLd;
    for (int64_t c = 0; c < cols; ++c) target[c] = source[(col0 + c) / stride - coarse_col0];
  }
}

// The fused scores of a range, into operands[0].tile.
inline void FusedScores(const Levels& levels, const TileRange& range,
                        const ScoreOperands* operands) {
  const int top = levels.L - 1;
  LevelScores<Start::kZero>(levels, top, range, operands[top], nullptr);
  for (int l = top - 1; l >= 0; --l) {
    if (levels.pairs) {
      LevelScores<Start::kCoarse>(levels, l, range, operands[l], operands[l + 1].tile);
    } else {
      RepeatTile(levels, l, range, operands[l + 1].tile, operands[l].tile);
      LevelScores<Start::kTile>(levels, l, range, operands[l], nullptr);
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
