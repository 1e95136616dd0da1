// The backward pass: strips of keys against all query blocks that see them. A strip owns its rows
// of d_keys and d_value; rows of d_queries gain one strip's share after the other.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <numeric>
#include <vector>

#include "hkt/kernels/attention.h"
#include "hkt/kernels/levels.h"
#include "hkt/kernels/queue.h"
#include "hkt/kernels/scratch.h"

#if defined(HKT_KERNELS_ATTENTION_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_ATTENTION_BACKWARD_INL_H_
#undef HKT_KERNELS_ATTENTION_BACKWARD_INL_H_
#else
#define HKT_KERNELS_ATTENTION_BACKWARD_INL_H_
#endif

#include "hkt/kernels/gradient_rows-inl.h"
#include "hkt/kernels/pack-inl.h"
#include "hkt/kernels/scores-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// Queries of a block, as in the forward pass.
constexpr int64_t kBackwardRows = 96;
// Keys of a strip: packed keys and values with their gradients should stay in L2 over all blocks,
// and two workers should find even shares in a thousand tokens (with 256 one waits for the other
// for an eighth of its time). A multiple of 32, as the rows of a block, and of 6 and 8 at three
// levels. It may depend on the head widths, never on T, B or the number of workers: the order of
// sums must not.
constexpr int64_t StripCols(int64_t D, int64_t Dv) { return std::max(D, Dv) <= 128 ? 192 : 96; }
// Most bytes of float32 sums of d_queries at a time, where the output cannot hold them.
constexpr int64_t kBackwardWave = int64_t{16} << 20;

class BackwardPass {
 public:
  BackwardPass(const AttentionParams& params, const Input& out, const float* lse,
               const Input& d_out, const AttentionGradients& gradients)
      : p_(params),
        out_(out),
        lse_(lse),
        d_out_(d_out),
        gradients_(gradients),
        levels_(LevelsOf(params, std::gcd(kBackwardRows, StripCols(params.D, params.Dv)))),
        group_(params.H / params.Hkv),
        strip_(StripCols(params.D, params.Dv)),
        top_(levels_.pairs ? levels_.step[params.L - 1] : 1),
        blocks_(CeilDiv(params.T, kBackwardRows)),
        strips_(CeilDiv(params.T, strip_)) {
    // Where tiles start at positions of every level, strips can go to different workers, and the
    // sums of d_queries live in the output if that is made of whole vectors of float32.
    direct_ = levels_.pairs && p_.type == Type::kFloat32 && p_.D % kLanes == 0;
    for (int l = 0; l < p_.L; ++l) direct_ = direct_ && gradients_.queries[l].column == 1;
    const int64_t rows = std::min(kBackwardRows, p_.T), cols = std::min(strip_, p_.T);
    const int64_t width = RoundUp(p_.D, kPanel), value_width = RoundUp(p_.Dv, kPanel);
    Layout worker, sums;
    for (int l = 0; l < p_.L; ++l) {
      rows_[l] = RoundUp(levels_.Most(l, RoundUp(rows, top_)), kRows);
      const int64_t most = levels_.Most(l, cols);
      cols_[l] = RoundUp(RoundUp(most, kRows), 4);
      keys_transposed_[l] = worker.Take(RoundUp(most, kPanel) * p_.D);
      keys_[l] = worker.Take(cols_[l] * width);
      queries_[l] = worker.Take(rows_[l] * width);
      scores_[l] = worker.Take(rows_[l] * kTileLd);
      d_scores_[l] = worker.Take(rows_[l] * kTileLd);
      const int64_t positions = CeilDiv(p_.T, levels_.step[l]) + kRows;
      key_capacity_[l] = levels_.pairs ? cols_[l] : positions;
      d_keys_[l] = worker.Take(key_capacity_[l] * width);
      query_capacity_[l] = positions;
      d_queries_[l] = sums.Take(direct_ ? 0 : positions * width);
    }
    values_transposed_ = worker.Take(RoundUp(cols, kPanel) * p_.Dv);
    d_value_ = worker.Take(cols_[0] * value_width);
    d_out_rows_ = worker.Take(rows_[0] * value_width);
    edge_ = worker.Take(kRows * kPanel);
    buffer_ = worker.Take(std::max<int64_t>(2, kLanes) * std::max(width, value_width));
    sums_floats_ = sums.floats();
    // A worker that has a whole key/value head also has the sums of its queries.
    own_sums_ = levels_.pairs ? 0 : worker.Take(group_ * sums_floats_);
    worker_floats_ = worker.floats();
  }

  void Run(const Parallel& parallel) {
    const int64_t units = p_.B * p_.Hkv, most = levels_.pairs ? parallel.workers : units;
    const int64_t workers = std::clamp<int64_t>(parallel.workers, 1, std::max<int64_t>(1, most));
    const int64_t unit_sums = levels_.pairs ? group_ * sums_floats_ : 0;
    const int64_t wave =
        unit_sums == 0 ? units : std::clamp<int64_t>(kBackwardWave / (4 * unit_sums), 1, units);
    Layout shared;
    const int64_t delta = shared.Take(p_.B * p_.H * p_.T);
    const int64_t sums = shared.Take(wave * unit_sums), own = shared.floats();
    const ScratchUse scratch(own + workers * worker_floats_);
    // Strips of a query block that have added their share.
    const int64_t unit_blocks = group_ * blocks_;
    std::vector<std::atomic<int32_t>> done(levels_.pairs ? wave * unit_blocks : 0);
    delta_ = scratch.data() + delta;
    float* const own_data = scratch.data() + own;

    RunQueue(parallel, p_.B * p_.H * blocks_, [&](int64_t worker, int64_t item) {
      Deltas(item / blocks_, item % blocks_, own_data + worker * worker_floats_ + buffer_);
    });
    for (int64_t first = 0; first < units; first += wave) {
      const int64_t count = std::min(wave, units - first);
      float* const unit_data = scratch.data() + sums;
      MaybePoison(unit_data, count * unit_sums);
      if (!levels_.pairs) {
        RunQueue(parallel, count, [&](int64_t worker, int64_t unit) {
          float* const memory = own_data + worker * worker_floats_;
          MaybePoison(memory, worker_floats_);
          WholeUnit(first + unit, memory);
        });
        continue;
      }
      for (std::atomic<int32_t>& strip : done) strip.store(0, std::memory_order_relaxed);
      RunQueue(parallel, count * strips_, [&](int64_t worker, int64_t item) {
        const int64_t unit = item / strips_;
        float* const memory = own_data + worker * worker_floats_;
        MaybePoison(memory, worker_floats_);
        Strip(first + unit, item % strips_, memory, unit_data + unit * unit_sums,
              done.data() + unit * unit_blocks);
      });
    }
  }

 private:
  // A key/value head.
  struct Unit {
    int64_t b, h, length;
  };
  Unit UnitOf(int64_t unit) const {
    const int64_t b = unit / p_.Hkv;
    return {b, unit % p_.Hkv, LengthOf(p_, b)};
  }

  // Of one block: delta_i = out_i . d_out_i, times the scale like dP.
  void Deltas(int64_t bh, int64_t block, float* buffer) const {
    const DF d;
    const int64_t b = bh / p_.H, i0 = block * kBackwardRows;
    const int64_t end = std::min(LengthOf(p_, b), i0 + kBackwardRows);
    const InputRows out = HeadRows(out_, p_.type, b, bh % p_.H);
    const InputRows d_out = HeadRows(d_out_, p_.type, b, bh % p_.H);
    float* second = buffer + RoundUp(p_.Dv, kPanel);
    for (int64_t i = i0; i < end; ++i) {
      const float* x = ReadRow(out, i, p_.Dv, buffer);
      const float* y = ReadRow(d_out, i, p_.Dv, second);
      VF lanes = hn::Zero(d);
      int64_t c = 0;
      for (; c + kLanes <= p_.Dv; c += kLanes)
        lanes = hn::MulAdd(hn::LoadU(d, x + c), hn::LoadU(d, y + c), lanes);
      float sum = hn::GetLane(hn::SumOfLanes(d, lanes));
      for (; c < p_.Dv; ++c) sum += x[c] * y[c];
      delta_[bh * p_.T + i] = sum * p_.scale;
    }
  }

  // What is behind the length: gradients of 0.
  void ZeroPadding(const Unit& unit) const {
    for (int l = 0; l < p_.L; ++l) {
      const int64_t all = CeilDiv(p_.T, levels_.step[l]);
      const int64_t valid = CeilDiv(unit.length, levels_.step[l]);
      ZeroRows(HeadRows(gradients_.keys[l], p_.type, unit.b, unit.h), valid, all, p_.D);
      for (int64_t g = 0; g < group_; ++g) {
        ZeroRows(HeadRows(gradients_.queries[l], p_.type, unit.b, unit.h * group_ + g), valid, all,
                 p_.D);
      }
    }
    ZeroRows(HeadRows(gradients_.value, p_.type, unit.b, unit.h), unit.length, p_.T, p_.Dv);
  }

  // One strip of a head whose tiles start at positions of every level.
  void Strip(int64_t index, int64_t strip, float* own, float* sums, std::atomic<int32_t>* done) {
    const Unit unit = UnitOf(index);
    if (strip == 0) ZeroPadding(unit);
    const int64_t j0 = strip * strip_;
    if (j0 >= unit.length) return;
    const int64_t cols = std::min(strip_, unit.length - j0);
    PackStrip(unit, j0, cols, own);
    for (int l = 0; l < p_.L; ++l) ClearPanels(own + d_keys_[l], key_capacity_[l], p_.D);
    const int64_t last = CeilDiv(unit.length, kBackwardRows) - 1;
    const int64_t least = p_.causal ? j0 / kBackwardRows : 0;
    for (int64_t g = 0; g < group_; ++g) {
      // Late blocks first: every strip passes by them, so that the strip before this one, which
      // another worker has, is ahead.
      for (int64_t block = last; block >= least; --block) {
        const TileRange range = RangeOf(unit, block, j0, cols);
        ScoreGradients(unit, g, range, own);
        KeyGradients(range, own);
        std::atomic<int32_t>& turn = done[g * blocks_ + block];
        AwaitCount(turn, static_cast<int32_t>(strip));
        QueryGradients(unit, g, range, own, sums + g * sums_floats_, strip == 0);
        // Under the causal mask the strip of the block's last row is its last one.
        const int64_t end = p_.causal ? range.first_row + range.rows : unit.length;
        if (!direct_ && j0 + cols >= end)
          WriteQueries(unit, g, range, own, sums + g * sums_floats_);
        turn.store(static_cast<int32_t>(strip) + 1, std::memory_order_release);
      }
    }
    for (int l = 0; l < p_.L; ++l) {
      WritePanels(own + d_keys_[l], key_capacity_[l], p_.D, levels_.Count(l, j0, cols), own,
                  HeadRows(gradients_.keys[l], p_.type, unit.b, unit.h).From(levels_.First(l, j0)));
    }
    WriteValues(unit, j0, cols, own);
  }

  // A whole head, where positions of coarse levels reach across tiles: strip after strip, with sums
  // of all positions.
  void WholeUnit(int64_t index, float* own) {
    const Unit unit = UnitOf(index);
    ZeroPadding(unit);
    if (unit.length == 0) return;
    float* sums = own + own_sums_;
    for (int l = 0; l < p_.L; ++l) {
      ClearPanels(own + d_keys_[l], key_capacity_[l], p_.D);
      for (int64_t g = 0; g < group_; ++g) {
        ClearPanels(sums + g * sums_floats_ + d_queries_[l], query_capacity_[l], p_.D);
      }
    }
    for (int64_t j0 = 0; j0 < unit.length; j0 += strip_) {
      const int64_t cols = std::min(strip_, unit.length - j0);
      PackStrip(unit, j0, cols, own);
      for (int64_t g = 0; g < group_; ++g) {
        for (int64_t block = p_.causal ? j0 / kBackwardRows : 0;
             block * kBackwardRows < unit.length; ++block) {
          const TileRange range = RangeOf(unit, block, j0, cols);
          ScoreGradients(unit, g, range, own);
          KeyGradients(range, own);
          QueryGradients(unit, g, range, own, sums + g * sums_floats_, false);
        }
      }
      WriteValues(unit, j0, cols, own);
    }
    for (int l = 0; l < p_.L; ++l) {
      const int64_t positions = CeilDiv(unit.length, levels_.step[l]);
      WritePanels(own + d_keys_[l], key_capacity_[l], p_.D, positions, own,
                  HeadRows(gradients_.keys[l], p_.type, unit.b, unit.h));
    }
    const TileRange all = {0, unit.length, 0, unit.length, p_.causal};
    for (int64_t g = 0; g < group_; ++g) WriteQueries(unit, g, all, own, sums + g * sums_floats_);
  }

  TileRange RangeOf(const Unit& unit, int64_t block, int64_t j0, int64_t cols) const {
    const int64_t i0 = block * kBackwardRows;
    return {i0, std::min(kBackwardRows, unit.length - i0), j0, cols, p_.causal};
  }

  void PackStrip(const Unit& unit, int64_t j0, int64_t cols, float* own) const {
    float* buffer = own + buffer_;
    for (int l = 0; l < p_.L; ++l) {
      const InputRows keys = HeadRows(p_.keys[l], p_.type, unit.b, unit.h);
      const int64_t first = levels_.First(l, j0), count = levels_.Count(l, j0, cols);
      PackTransposed(keys, first, count, p_.D, p_.scale, buffer, own + keys_transposed_[l]);
      PackPanels(keys, first, count, count, p_.D, 1, cols_[l], buffer, own + keys_[l]);
    }
    // dP and delta carry the scale, so that dS is the gradient of the unscaled products.
    PackTransposed(HeadRows(p_.value, p_.type, unit.b, unit.h), j0, cols, p_.Dv, p_.scale, buffer,
                   own + values_transposed_);
    ClearPanels(own + d_value_, cols_[0], p_.Dv);
  }

  static void ClearPanels(float* panels, int64_t capacity, int64_t D) {
    std::memset(panels, 0, static_cast<size_t>(capacity * RoundUp(D, kPanel)) * sizeof(float));
  }

  // Weights P, and dS of all levels.
  void ScoreGradients(const Unit& unit, int64_t g, const TileRange& range, float* own) const {
    const int64_t h = unit.h * group_ + g, i0 = range.first_row;
    float* buffer = own + buffer_;
    ScoreOperands operands[kMaxLevels];
    for (int l = 0; l < p_.L; ++l) {
      const int64_t count = levels_.Count(l, i0, range.rows);
      PackPanels(HeadRows(p_.queries[l], p_.type, unit.b, h), levels_.First(l, i0), count,
                 RoundUp(count, kRows), p_.D, 1, rows_[l], buffer, own + queries_[l]);
      operands[l] = {own + queries_[l], rows_[l], own + keys_transposed_[l], p_.D,
                     own + scores_[l]};
    }
    PackPanels(HeadRows(d_out_, p_.type, unit.b, h), i0, range.rows, RoundUp(range.rows, kRows),
               p_.Dv, 1, rows_[0], buffer, own + d_out_rows_);
    FusedScores(levels_, range, operands);
    const ScoreOperands d_weights = {own + d_out_rows_, rows_[0], own + values_transposed_, p_.Dv,
                                     own + d_scores_[0]};
    LevelScores<Start::kZero>(levels_, 0, range, d_weights, nullptr);

    // Whole register tiles and whole positions of the top level; at most kTileLd.
    const int64_t filled =
        RoundUp(std::max(RoundUp(range.cols, kRows), RoundUp(range.cols, top_)), kLanes);
    const float* lse = lse_ + (unit.b * p_.H + h) * p_.T + i0;
    const float* delta = delta_ + (unit.b * p_.H + h) * p_.T + i0;
    for (int64_t i = 0; i < RoundUp(range.rows, top_); ++i) {
      float* d_scores = own + d_scores_[0] + i * kTileLd;
      if (i < range.rows) {
        const int64_t seen = std::clamp<int64_t>(i0 + i - range.first_col + 1, 0, range.cols);
        RowGradients(own + scores_[0] + i * kTileLd, d_scores, range.causal ? seen : range.cols,
                     filled, lse[i], delta[i]);
      } else {  // so that the last position's pair is whole
        std::memset(d_scores, 0, static_cast<size_t>(filled) * sizeof(float));
      }
      if (!levels_.pairs) continue;
      // A level's row is whole with the second of its two rows.
      for (int64_t l = 1, row = i; l < p_.L && row % 2 == 1; ++l, row /= 2) {
        SumPairs(own + d_scores_[l - 1] + (row - 1) * kTileLd,
                 RoundUp(range.cols, top_) / levels_.step[l],
                 own + d_scores_[l] + row / 2 * kTileLd);
      }
    }
    if (!levels_.pairs) {
      for (int l = 1; l < p_.L; ++l) SumCells(l, range, own);
    }
  }

  // dS of level l from that of level l - 1, any stride and alignment.
  void SumCells(int l, const TileRange& range, float* own) const {
    const int64_t stride = levels_.step[l] / levels_.step[l - 1];
    const int64_t row0 = levels_.First(l - 1, range.first_row);
    const int64_t col0 = levels_.First(l - 1, range.first_col);
    const int64_t coarse_row0 = levels_.First(l, range.first_row);
    const int64_t coarse_col0 = levels_.First(l, range.first_col);
    const int64_t rows = levels_.Count(l - 1, range.first_row, range.rows);
    const int64_t cols = levels_.Count(l - 1, range.first_col, range.cols);
    const int64_t coarse_rows = levels_.Count(l, range.first_row, range.rows);
    const int64_t filled = RoundUp(levels_.Count(l, range.first_col, range.cols), kRows);
    for (int64_t r = 0; r < coarse_rows; ++r) {
      std::memset(own + d_scores_[l] + r * kTileLd, 0, static_cast<size_t>(filled) * sizeof(float));
    }
    for (int64_t r = 0; r < rows; ++r) {
      const float* source = own + d_scores_[l - 1] + r * kTileLd;
      float* target = own + d_scores_[l] + ((row0 + r) / stride - coarse_row0) * kTileLd;
      for (int64_t c = 0; c < cols; ++c) target[(col0 + c) / stride - coarse_col0] += source[c];
    }
  }

  // d_value += P^T d_out and d_keys[l] += dS^(l)^T q^(l).
  void KeyGradients(const TileRange& range, float* own) const {
    SumOverRows(0, range, own + scores_[0], own + d_out_rows_, p_.Dv, own + d_value_, cols_[0]);
    for (int l = 0; l < p_.L; ++l) {
      const int64_t offset = levels_.pairs ? 0 : levels_.First(l, range.first_col) * kPanel;
      SumOverRows(l, range, own + d_scores_[l], own + queries_[l], p_.D, own + d_keys_[l] + offset,
                  key_capacity_[l]);
    }
  }

  // target [cols, width] += tile^T rows; `target` panels of `capacity` rows.
  void SumOverRows(int l, const TileRange& range, const float* tile, const float* rows,
                   int64_t width, float* target, int64_t capacity) const {
    const int64_t row0 = levels_.First(l, range.first_row),
                  col0 = levels_.First(l, range.first_col);
    const int64_t count = levels_.Count(l, range.first_row, range.rows);
    const int64_t cols = levels_.Count(l, range.first_col, range.cols);
    for (int64_t c = 0; c < width; c += kPanel) {
      const auto product =
          width - c <= kLanes ? TransposedProductTile<1> : TransposedProductTile<2>;
      for (int64_t g = 0; g < cols; g += kRows) {
        const int64_t skipped = range.causal ? std::max<int64_t>(0, col0 + g - row0) : 0;
        if (skipped >= count) break;
        product(tile + skipped * kTileLd + g, rows + c * rows_[l] + skipped * kPanel,
                count - skipped, target + c * capacity + g * kPanel);
      }
    }
  }

  // d_queries[l] += dS^(l) k^(l).
  void QueryGradients(const Unit& unit, int64_t g, const TileRange& range, float* own, float* sums,
                      bool first) const {
    for (int l = 0; l < p_.L; ++l) {
      const int64_t row0 = levels_.First(l, range.first_row);
      const int64_t col0 = levels_.First(l, range.first_col);
      const int64_t rows = levels_.Count(l, range.first_row, range.rows);
      const int64_t cols = levels_.Count(l, range.first_col, range.cols);
      float* target;  // of row row0, column 0
      int64_t ld, next;
      if (direct_) {
        const OutputRows out =
            HeadRows(gradients_.queries[l], p_.type, unit.b, unit.h * group_ + g);
        target = static_cast<float*>(out.From(row0).data);
        ld = out.row;
        next = kPanel;
      } else {
        target = sums + d_queries_[l] + row0 * kPanel;
        ld = kPanel;
        next = query_capacity_[l] * kPanel;
      }
      for (int64_t c = 0; c < p_.D; c += kPanel, target += next) {
        const bool narrow = p_.D - c <= kLanes;
        const float* keys = own + keys_[l] + c * cols_[l];
        for (int64_t r = 0; r < rows; r += kRows) {
          int64_t n = cols;
          if (range.causal) {
            n = std::min(cols, RoundUp(std::max<int64_t>(0, row0 + r + kRows - col0), 4));
          }
          if (n == 0) continue;  // never in the first strip, which every row sees
          AddProduct(own + d_scores_[l] + r * kTileLd, keys, n, std::min(kRows, rows - r), narrow,
                     first, target + r * ld, ld, own + edge_);
        }
      }
    }
  }

  // One register tile of it; a tile with fewer rows goes through `edge`, as the rows behind may be
  // another worker's.
  static void AddProduct(const float* d_scores, const float* keys, int64_t n, int64_t rows,
                         bool narrow, bool first, float* target, int64_t ld, float* edge) {
    const auto product = first ? (narrow ? ProductTile<1, Sum::kNew> : ProductTile<2, Sum::kNew>)
                               : (narrow ? ProductTile<1, Sum::kAdd> : ProductTile<2, Sum::kAdd>);
    if (rows == kRows) {
      product(d_scores, keys, n, nullptr, target, ld);
      return;
    }
    const size_t bytes = static_cast<size_t>(narrow ? kLanes : kPanel) * sizeof(float);
    if (!first) {
      for (int64_t r = 0; r < rows; ++r) std::memcpy(edge + r * kPanel, target + r * ld, bytes);
    }
    product(d_scores, keys, n, nullptr, edge, kPanel);
    for (int64_t r = 0; r < rows; ++r) std::memcpy(target + r * ld, edge + r * kPanel, bytes);
  }

  void WriteQueries(const Unit& unit, int64_t g, const TileRange& range, float* own,
                    float* sums) const {
    for (int l = 0; l < p_.L; ++l) {
      const int64_t first = levels_.First(l, range.first_row);
      WritePanels(
          sums + d_queries_[l] + first * kPanel, query_capacity_[l], p_.D,
          levels_.Count(l, range.first_row, range.rows), own,
          HeadRows(gradients_.queries[l], p_.type, unit.b, unit.h * group_ + g).From(first));
    }
  }

  void WriteValues(const Unit& unit, int64_t j0, int64_t cols, float* own) const {
    WritePanels(own + d_value_, cols_[0], p_.Dv, cols, own,
                HeadRows(gradients_.value, p_.type, unit.b, unit.h).From(j0));
  }

  void WritePanels(const float* panels, int64_t capacity, int64_t D, int64_t n, float* own,
                   const OutputRows& out) const {
    float* buffer = own + buffer_;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < D; c += kPanel) {
        std::memcpy(buffer + c, panels + c * capacity + i * kPanel, kPanel * sizeof(float));
      }
      WriteRow(buffer, out, i, D);
    }
  }

  const AttentionParams& p_;
  const Input& out_;
  const float* lse_;
  const Input& d_out_;
  const AttentionGradients& gradients_;
  Levels levels_;
  int64_t group_, strip_, top_, blocks_, strips_;  // top_: tokens a position of the top level
  bool direct_;
  float* delta_ = nullptr;  // [B, H, T]
  // Rows of a level's query panels and tiles, of its key panels, and of the sums of d_keys and
  // d_queries.
  int64_t rows_[kMaxLevels], cols_[kMaxLevels];
  int64_t key_capacity_[kMaxLevels], query_capacity_[kMaxLevels];
  // Floats of a worker's own memory and of the sums of one query head, and offsets of their pieces.
  int64_t worker_floats_, keys_transposed_[kMaxLevels], keys_[kMaxLevels], queries_[kMaxLevels];
  int64_t scores_[kMaxLevels], d_scores_[kMaxLevels], d_keys_[kMaxLevels];
  int64_t values_transposed_, d_value_, d_out_rows_, edge_, buffer_, own_sums_;
  int64_t sums_floats_, d_queries_[kMaxLevels];
};

void Backward(const AttentionParams& params, const Input& out, const float* lse, const Input& d_out,
              const AttentionGradients& gradients, const Parallel& parallel) {
  BackwardPass(params, out, lse, d_out, gradients).Run(parallel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
