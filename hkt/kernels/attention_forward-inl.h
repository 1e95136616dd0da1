// The forward pass: query blocks against all their key tiles, with the running softmax.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "hkt/kernels/attention.h"
#include "hkt/kernels/levels.h"
#include "hkt/kernels/queue.h"
#include "hkt/kernels/scratch.h"

#if defined(HKT_KERNELS_ATTENTION_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_ATTENTION_FORWARD_INL_H_
#undef HKT_KERNELS_ATTENTION_FORWARD_INL_H_
#else
#define HKT_KERNELS_ATTENTION_FORWARD_INL_H_
#endif

#include "hkt/kernels/pack-inl.h"
#include "hkt/kernels/scores-inl.h"
#include "hkt/kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// Queries of a block. A multiple of 6 and 8, the rows of register tiles, and of 32, so that up to
// six levels at s = 2 start with it; with kTileCols keys a tile of scores is 96 KiB, in L2.
constexpr int64_t kForwardRows = 96;
// Bytes of packed keys and values at a time, unless one head has more: a worker's share stays in
// its L2 over all blocks of a head, and every worker has blocks to do.
constexpr int64_t WaveBytes(int64_t workers) {
  return std::max<int64_t>(2, workers) * (int64_t{1} << 19);
}

class ForwardPass {
 public:
  ForwardPass(const AttentionParams& params, const Output& out, float* lse)
      : p_(params),
        out_(out),
        lse_(lse),
        levels_(LevelsOf(params, kForwardRows)),
        group_(params.H / params.Hkv),
        rows_(std::min(kForwardRows, params.T)),
        cols_(std::min(kTileCols, params.T)),
        blocks_(CeilDiv(params.T, kForwardRows)),
        tiles_(CeilDiv(params.T, kTileCols)) {
    Layout tile, worker;
    for (int l = 0; l < p_.L; ++l) {
      const int64_t capacity = RoundUp(levels_.Most(l, rows_), kRows);
      capacity_[l] = capacity;
      keys_[l] = tile.Take(RoundUp(levels_.Most(l, cols_), kPanel) * p_.D);
      queries_[l] = worker.Take(capacity * RoundUp(p_.D, kPanel));
      scores_[l] = worker.Take(capacity * kTileLd);
    }
    value_capacity_ = RoundUp(cols_, 4);
    values_ = tile.Take(value_capacity_ * RoundUp(p_.Dv, kPanel));
    tile_floats_ = tile.floats();
    sums_ = worker.Take(capacity_[0] * RoundUp(p_.Dv, kPanel));
    max_ = worker.Take(capacity_[0] + kLanes);  // read and written whole vectors at a time
    new_max_ = worker.Take(capacity_[0] + kLanes);
    rescale_ = worker.Take(capacity_[0] + kLanes);
    lanes_ = worker.Take(capacity_[0] * kLanes);
    buffer_ = worker.Take(kLanes * std::max(p_.D, RoundUp(p_.Dv, kPanel)));
    worker_floats_ = worker.floats();
  }

  void Run(const Parallel& parallel) {
    const int64_t units = p_.B * p_.Hkv, unit_floats = tiles_ * tile_floats_;
    const int64_t workers = std::max<int64_t>(1, parallel.workers);
    const int64_t wave = std::clamp<int64_t>(WaveBytes(workers) / (4 * unit_floats), 1, units);
    const int64_t waves = CeilDiv(units, wave),
                  slots = std::min<int64_t>(waves, workers > 1 ? 2 : 1);
    const ScratchUse scratch(slots * wave * unit_floats + workers * worker_floats_);
    float* const own_data = scratch.data() + slots * wave * unit_floats;
    // One queue for everything, without a barrier between waves: the packing of a wave, its blocks,
    // the packing of the next. A worker waits only for items that others took before its own.
    const int64_t packs = wave * tiles_, blocks = wave * group_ * blocks_;
    std::vector<std::atomic<int64_t>> packed(waves), finished(waves);
    RunQueue(parallel, waves * (packs + blocks), [&](int64_t worker, int64_t item) {
      const int64_t w = item / (packs + blocks), rest = item % (packs + blocks);
      float* const own = own_data + worker * worker_floats_;
      float* const slot = scratch.data() + w % slots * wave * unit_floats;
      MaybePoison(own, worker_floats_);
      if (rest < packs) {
        if (w >= slots) AwaitCount(finished[w - slots], blocks);
        const int64_t unit = rest / tiles_, tile = rest % tiles_;
        float* const target = slot + rest * tile_floats_;
        MaybePoison(target, tile_floats_);
        if (w * wave + unit < units) Pack(w * wave + unit, tile, own + buffer_, target);
        packed[w].fetch_add(1, std::memory_order_release);
      } else {
        AwaitCount(packed[w], packs);
        const int64_t unit = (rest - packs) / (group_ * blocks_);
        const int64_t block = (rest - packs) % (group_ * blocks_);
        // Late blocks first: under the causal mask they have the most keys.
        if (w * wave + unit < units) {
          Block(w * wave + unit, block / blocks_, blocks_ - 1 - block % blocks_,
                slot + unit * unit_floats, own);
        }
        finished[w].fetch_add(1, std::memory_order_release);
      }
    });
  }

 private:
  // Keys and values of one tile of one key/value head.
  void Pack(int64_t unit, int64_t tile, float* buffer, float* target) const {
    const int64_t b = unit / p_.Hkv, h = unit % p_.Hkv, j0 = tile * kTileCols;
    const int64_t cols = std::min(kTileCols, LengthOf(p_, b) - j0);
    if (cols <= 0) return;
    for (int l = 0; l < p_.L; ++l) {
      PackTransposed(HeadRows(p_.keys[l], p_.type, b, h), levels_.First(l, j0),
                     levels_.Count(l, j0, cols), p_.D, p_.scale, buffer, target + keys_[l]);
    }
    PackPanels(HeadRows(p_.value, p_.type, b, h), j0, cols, RoundUp(cols, 4), p_.Dv, 1,
               value_capacity_, buffer, target + values_);
  }

  // One block of queries of one head.
  void Block(int64_t unit, int64_t g, int64_t block, const float* packed, float* own) const {
    const int64_t b = unit / p_.Hkv, h = unit % p_.Hkv * group_ + g, i0 = block * kForwardRows;
    const int64_t length = LengthOf(p_, b), end = std::min(p_.T, i0 + kForwardRows);
    const int64_t rows = std::clamp<int64_t>(length - i0, 0, kForwardRows);
    const OutputRows out = HeadRows(out_, p_.type, b, h);
    float* lse = lse_ + (b * p_.H + h) * p_.T;
    ZeroRows(out, i0 + rows, end, p_.Dv);
    std::fill(lse + i0 + rows, lse + end, -std::numeric_limits<float>::infinity());
    if (rows == 0) return;

    ScoreOperands operands[kMaxLevels];
    for (int l = 0; l < p_.L; ++l) {
      const int64_t count = levels_.Count(l, i0, rows);
      PackPanels(HeadRows(p_.queries[l], p_.type, b, h), levels_.First(l, i0), count,
                 RoundUp(count, kRows), p_.D, 1, capacity_[l], own + buffer_, own + queries_[l]);
      operands[l] = {own + queries_[l], capacity_[l], nullptr, p_.D, own + scores_[l]};
    }
    const int64_t keys = p_.causal ? i0 + rows : length;
    for (int64_t j0 = 0; j0 < keys; j0 += kTileCols) {
      const float* tile = packed + j0 / kTileCols * tile_floats_;
      for (int l = 0; l < p_.L; ++l) operands[l].keys = tile + keys_[l];
      const TileRange range = {i0, rows, j0, std::min(kTileCols, length - j0), p_.causal};
      FusedScores(levels_, range, operands);
      Softmax(range, own);
      Product(range, tile + values_, own);
    }
    Finish(out, lse, i0, rows, own);
  }

  // Keys that row i of the tile sees there.
  static int64_t Seen(const TileRange& range, int64_t i) {
    return range.causal ? std::min(range.cols, range.first_row + i - range.first_col + 1)
                        : range.cols;
  }
  // The first row that sees a key.
  static int64_t FirstRow(const TileRange& range) {
    return range.causal ? std::max<int64_t>(0, range.first_col - range.first_row) : 0;
  }
  // Keys of the register tile of rows g …, its last row's, rounded up as ProductTile unrolls.
  static int64_t SeenByGroup(const TileRange& range, int64_t g) {
    return RoundUp(Seen(range, std::min(g + kRows, range.rows) - 1), 4);
  }

  // Scores become weights relative to the running maximum; rescale[i] is what the sums so far must
  // be multiplied with.
  void Softmax(const TileRange& range, float* own) const {
    const DF d;
    float *scores = own + scores_[0], *max = own + max_, *new_max = own + new_max_;
    float *rescale = own + rescale_, *lanes = own + lanes_;
    const bool first = range.first_col == 0;
    const int64_t begin = FirstRow(range), group = begin / kRows * kRows;
    for (int64_t i = begin; i < range.rows; ++i) {
      const float start = first ? -std::numeric_limits<float>::infinity() : max[i];
      new_max[i] = RowMax(scores + i * kTileLd, Seen(range, i), start);
    }
    if (first) {
      std::copy(new_max, new_max + range.rows, max);
    } else {
      for (int64_t i = group; i < range.rows; i += kLanes) {
        // Rows before `begin` keep what they had: new_max is max there. Lanes behind the last row
        // are never used.
        const VF next = hn::LoadU(d, new_max + i);
        hn::StoreU(Exp(hn::Sub(hn::LoadU(d, max + i), next)), d, rescale + i);
        hn::StoreU(next, d, max + i);
      }
    }
    for (int64_t i = group; i < range.rows; ++i) {
      float *row = scores + i * kTileLd, *sum = lanes + i * kLanes;
      const int64_t filled = RoundUp(SeenByGroup(range, i / kRows * kRows), kLanes);
      if (i < begin) {
        std::memset(row, 0, static_cast<size_t>(filled) * sizeof(float));
        continue;
      }
      const VF start = first ? hn::Zero(d) : hn::Mul(hn::Load(d, sum), hn::Set(d, rescale[i]));
      RowWeights(row, Seen(range, i), filled, max[i], sum, start);
    }
  }

  // sums = sums * rescale + weights V.
  void Product(const TileRange& range, const float* values, float* own) const {
    const float* scores = own + scores_[0];
    const int64_t begin = FirstRow(range) / kRows * kRows;
    for (int64_t c = 0; c < p_.Dv; c += kPanel) {
      const float* panel = values + c * value_capacity_;
      float* sums = own + sums_ + c * capacity_[0];
      const bool narrow = p_.Dv - c <= kLanes;
      for (int64_t g = begin; g < range.rows; g += kRows) {
        const int64_t n = SeenByGroup(range, g);
        const float *a = scores + g * kTileLd, *rescale = own + rescale_ + g;
        float* target = sums + g * kPanel;
        if (range.first_col == 0) {
          (narrow ? ProductTile<1, Sum::kNew> : ProductTile<2, Sum::kNew>)(a, panel, n, nullptr,
                                                                           target, kPanel);
        } else {
          (narrow ? ProductTile<1, Sum::kScale> : ProductTile<2, Sum::kScale>)(a, panel, n, rescale,
                                                                               target, kPanel);
        }
      }
    }
  }

  void Finish(const OutputRows& out, float* lse, int64_t i0, int64_t rows, float* own) const {
    const DF d;
    const float *max = own + max_, *lanes = own + lanes_;
    float* buffer = own + buffer_;
    for (int64_t i = 0; i < rows; ++i) {
      const float sum = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, lanes + i * kLanes)));
      lse[i0 + i] = static_cast<float>(max[i] + std::log(static_cast<double>(sum)));
      const VF inverse = hn::Set(d, 1 / sum);
      for (int64_t c = 0; c < p_.Dv; c += kPanel) {
        const float* sums = own + sums_ + c * capacity_[0] + i * kPanel;
        hn::Store(hn::Mul(inverse, hn::Load(d, sums)), d, buffer + c);
        hn::Store(hn::Mul(inverse, hn::Load(d, sums + kLanes)), d, buffer + c + kLanes);
      }
      WriteRow(buffer, out, i0 + i, p_.Dv);
    }
  }

  const AttentionParams& p_;
  const Output& out_;
  float* lse_;
  Levels levels_;
  int64_t group_, rows_, cols_, blocks_, tiles_;
  // Floats of a packed tile and of a worker's own memory, and the offsets of their pieces.
  int64_t tile_floats_, keys_[kMaxLevels], values_, value_capacity_;
  int64_t worker_floats_, queries_[kMaxLevels], scores_[kMaxLevels], capacity_[kMaxLevels];
  int64_t sums_, max_, new_max_, rescale_, lanes_, buffer_;
};

void Forward(const AttentionParams& params, const Output& out, float* lse,
             const Parallel& parallel) {
  ForwardPass(params, out, lse).Run(parallel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
