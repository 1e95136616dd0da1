// What both passes of the downsampling share: packed weights, the rows of x under a block of
// outputs, depthwise taps, pointwise product and the statistics of LayerNorm.
//
// A block is some rows of the output of one sequence. Its matrices [rows, d] lie in panels
// (tile-inl.h); vectors over columns are padded with zeros to whole panels.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "hkt/kernels/downsample.h"
#include "hkt/kernels/scratch.h"

#if defined(HKT_KERNELS_DOWNSAMPLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_DOWNSAMPLE_INL_H_
#undef HKT_KERNELS_DOWNSAMPLE_INL_H_
#else
#define HKT_KERNELS_DOWNSAMPLE_INL_H_
#endif

#include "hkt/kernels/gelu-inl.h"
#include "hkt/kernels/pack-inl.h"
#include "hkt/kernels/panel_product-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// Rows of a block. A multiple of 6 and 8, the rows of register tiles; at d = 128 the matrices of a
// block are 48 KiB each and stay in L2 with the weights.
constexpr int64_t kDownsampleRows = 96;

// Taps that the depthwise loops hold in registers at a time, one output panel each: 2 x 4 weights
// leave room in the 16 registers of AVX2.
constexpr int kTapsAtOnce = 4;

// Rows of x under a block: tap a of row r stands at data + r * row + a * tap.
struct TapRows {
  const float* data;
  int64_t row, tap;
};

// The sizes that follow from DownsampleParams, and rows of x and of outputs as the loops want them.
class DownsampleShape {
 public:
  explicit DownsampleShape(const DownsampleParams& params)
      : p_(params), Tl_(CeilDiv(params.T, params.stride)), width_(RoundUp(params.d, kPanel)) {}

  int64_t Tl() const { return Tl_; }
  int64_t width() const { return width_; }  // d in whole panels
  int64_t vectors() const { return CeilDiv(p_.d, kLanes); }

  // Floats of the buffer of TapRows for a block of n rows.
  int64_t TapFloats(int64_t n) const {
    return ((n - 1) * std::min(p_.stride, p_.k) + p_.k) * width_;
  }

  // The rows of x under outputs first … first + n - 1 of sequence b: in place where they are padded
  // float32 rows already, else in `buffer`, with zeros before the first token. Where s > k the
  // skipped tokens are left out. Tokens at T and later are not touched: the last tap reads (Tl - 1)
  // s.
  TapRows Taps(int64_t b, int64_t first, int64_t n, float* buffer) const {
    const InputRows x = HeadRows(p_.x, p_.type, b, 0);
    const int64_t before = first * p_.stride - (p_.k - 1);
    if (p_.type == Type::kFloat32 && x.column == 1 && width_ == p_.d && before >= 0) {
      return {static_cast<const float*>(x.data) + before * x.row, p_.stride * x.row, x.row};
    }
    const int64_t step = std::min(p_.stride, p_.k);
    const auto copy = [&](int64_t i, int64_t t) {
      float* target = buffer + i * width_;
      if (t < 0) {
        std::memset(target, 0, static_cast<size_t>(width_) * sizeof(float));
      } else {
        ReadPadded(x, t, target);
      }
    };
    if (step == p_.stride) {
      for (int64_t i = 0; i < (n - 1) * step + p_.k; ++i) copy(i, before + i);
    } else {
      for (int64_t r = 0; r < n; ++r) {
        for (int64_t a = 0; a < p_.k; ++a) copy(r * step + a, before + r * p_.stride + a);
      }
    }
    return {buffer, step * width_, width_};
  }

  // Where to put a whole padded row i: in place where it has the same form, else `buffer`, which
  // Put then brings there.
  float* Target(const OutputRows& rows, int64_t i, float* buffer) const {
    const bool in_place = p_.type == Type::kFloat32 && rows.column == 1 && width_ == p_.d;
    return in_place ? static_cast<float*>(rows.data) + i * rows.row : buffer;
  }
  void Put(const OutputRows& rows, int64_t i, const float* target, const float* buffer) const {
    if (target == buffer) WriteRow(buffer, rows, i, p_.d);
  }

  // Row i of `rows`, padded with zeros, in `target`.
  void ReadPadded(const InputRows& rows, int64_t i, float* target) const {
    const float* source = ReadRow(rows, i, p_.d, target);
    if (source != target) std::memcpy(target, source, static_cast<size_t>(p_.d) * sizeof(float));
    std::fill(target + p_.d, target + width_, 0.0F);
  }

 private:
  const DownsampleParams& p_;
  int64_t Tl_, width_;
};

// One panel of the depthwise convolution, kTaps taps: y[r] = start + sum_a w[a] x[r, a]. `start`
// null: what y holds, from the taps before.
template <int kTaps>
HWY_NOINLINE void DepthwisePanel(const TapRows& x, int64_t n, const float* HWY_RESTRICT w,
                                 int64_t ldw, const float* HWY_RESTRICT start,
                                 float* HWY_RESTRICT y) {
  const DF d;
  VF w0[kTaps], w1[kTaps];
  HKT_UNROLL for (int a = 0; a < kTaps; ++a) {
    w0[a] = hn::Load(d, w + a * ldw);
    w1[a] = hn::Load(d, w + a * ldw + kLanes);
  }
  const float* HWY_RESTRICT row = x.data;
  for (int64_t r = 0; r < n; ++r, row += x.row, y += kPanel) {
    const float* from = start == nullptr ? y : start;
    VF y0 = hn::Load(d, from), y1 = hn::Load(d, from + kLanes);
    const float* HWY_RESTRICT source = row;
    HKT_UNROLL for (int a = 0; a < kTaps; ++a, source += x.tap) {
      y0 = hn::MulAdd(w0[a], hn::LoadU(d, source), y0);
      y1 = hn::MulAdd(w1[a], hn::LoadU(d, source + kLanes), y1);
    }
    hn::Store(y0, d, y);
    hn::Store(y1, d, y + kLanes);
  }
}

// Calls run<taps>(first tap) for the taps in pieces of at most kTapsAtOnce.
template <class Run>
HWY_INLINE void ForTaps(int64_t k, const Run& run) {
  for (int64_t a = 0; a < k; a += kTapsAtOnce) {
    switch (std::min<int64_t>(kTapsAtOnce, k - a)) {
      case 1:
        run.template operator()<1>(a);
        break;
      case 2:
        run.template operator()<2>(a);
        break;
      case 3:
        run.template operator()<3>(a);
        break;
      default:
        run.template operator()<4>(a);
    }
  }
}

// The weights, packed once a call.
class DownsampleWeights {
 public:
  DownsampleWeights(const DownsampleParams& params, const DownsampleShape& shape, bool backward)
      : p_(params), width_(shape.width()), backward_(backward) {
    taps_ = layout_.Take(p_.k * width_);
    depthwise_bias_ = layout_.Take(width_);
    if (p_.OnlyDepthwise()) return;
    for (int64_t* vector : {&pointwise_bias_, &norm_weight_, &norm_bias_})
      *vector = layout_.Take(width_);
    zeros_ = layout_.Take(width_);
    pointwise_ = layout_.Take(p_.d * width_);
    if (backward) pointwise_backward_ = layout_.Take(p_.d * width_);
    buffer_ = layout_.Take(kLanes * p_.d);
  }

  int64_t floats() const { return layout_.floats(); }

  void Pack(float* data) {
    MaybePoison(data, floats());
    data_ = data;
    for (int64_t a = 0; a < p_.k; ++a) {
      float* target = data + taps_ + a * width_;
      for (int64_t c = 0; c < width_; ++c)
        target[c] = c < p_.d ? p_.depthwise_weight[c * p_.k + a] : 0.0F;
    }
    Pad(p_.depthwise_bias, data + depthwise_bias_);
    if (p_.OnlyDepthwise()) return;
    Pad(p_.pointwise_bias, data + pointwise_bias_);
    Pad(p_.norm_weight, data + norm_weight_);
    Pad(p_.norm_bias, data + norm_bias_);
    std::fill(data + zeros_, data + zeros_ + width_, 0.0F);
    // z = y W^T and d_y = d_z W: the right operands are W^T and W.
    const InputRows W = {p_.pointwise_weight, p_.d, 1, Type::kFloat32};
    PackTransposed(W, 0, p_.d, p_.d, 1, data + buffer_, data + pointwise_);
    if (backward_) {
      PackPanels(W, 0, p_.d, p_.d, p_.d, 1, p_.d, data + buffer_, data + pointwise_backward_);
    }
  }

  const float* taps() const { return data_ + taps_; }  // [k][width]
  const float* depthwise_bias() const { return data_ + depthwise_bias_; }
  const float* pointwise_bias() const { return data_ + pointwise_bias_; }
  const float* norm_weight() const { return data_ + norm_weight_; }
  const float* norm_bias() const { return data_ + norm_bias_; }
  const float* zeros() const { return data_ + zeros_; }
  const float* pointwise() const { return data_ + pointwise_; }
  const float* pointwise_backward() const { return data_ + pointwise_backward_; }

 private:
  void Pad(const float* source, float* target) const {
    std::copy(source, source + p_.d, target);
    std::fill(target + p_.d, target + width_, 0.0F);
  }

  const DownsampleParams& p_;
  int64_t width_;
  bool backward_;
  Layout layout_;
  int64_t taps_ = 0, depthwise_bias_ = 0, pointwise_bias_ = 0, norm_weight_ = 0, norm_bias_ = 0;
  int64_t zeros_ = 0, pointwise_ = 0, pointwise_backward_ = 0, buffer_ = 0;
  const float* data_ = nullptr;
};

// y and, unless the depthwise convolution is all, z of a block of n rows, in panels of `capacity`
// rows, whole register tiles.
HWY_INLINE void Convolve(const DownsampleParams& p, const DownsampleWeights& weights,
                         const TapRows& x, int64_t n, int64_t capacity, float* HWY_RESTRICT y,
                         float* HWY_RESTRICT z) {
  const int64_t width = RoundUp(p.d, kPanel);
  for (int64_t c = 0; c < width; c += kPanel) {
    float* panel = y + c * capacity;
    ForTaps(p.k, [&]<int kTaps>(int64_t a) {
      const TapRows taps = {x.data + a * x.tap + c, x.row, x.tap};
      DepthwisePanel<kTaps>(taps, n, weights.taps() + a * width + c, width,
                            a == 0 ? weights.depthwise_bias() + c : nullptr, panel);
    });
    std::fill(panel + n * kPanel, panel + RoundUp(n, kRows) * kPanel, 0.0F);
  }
  if (p.OnlyDepthwise()) return;
  PanelProduct(y, capacity, n, weights.pointwise(), p.d, p.d, weights.pointwise_bias(), z);
}

// Vector v of a row of a matrix in panels.
HWY_INLINE constexpr int64_t VectorAt(int64_t v, int64_t capacity) {
  return v / 2 * capacity * kPanel + v % 2 * kLanes;
}

// The mean of a row over the d columns, and 1 / sqrt(variance + eps), by two passes.
struct RowStatistics {
  float mean, inverse;
};

HWY_INLINE RowStatistics Statistics(const float* HWY_RESTRICT row, int64_t capacity, int64_t d,
                                    float eps) {
  const DF tag;
  const int64_t whole = d / kLanes;
  const hn::Mask<DF> tail = FirstLanes(d - whole * kLanes);
  const auto sum = [&](const auto& term) HWY_ATTR {
    VF s0 = hn::Zero(tag), s1 = hn::Zero(tag);
    int64_t v = 0;
    for (; v + 2 <= whole; v += 2) {
      const float* HWY_RESTRICT panel = row + v / 2 * capacity * kPanel;
      s0 = hn::Add(s0, term(hn::Load(tag, panel)));
      s1 = hn::Add(s1, term(hn::Load(tag, panel + kLanes)));
    }
    if (v < whole) {
      s0 = hn::Add(s0, term(hn::Load(tag, row + VectorAt(v, capacity))));
      ++v;
    }
    if (v * kLanes < d) {
      const VF last = term(hn::Load(tag, row + VectorAt(v, capacity)));
      s1 = hn::Add(s1, hn::IfThenElseZero(tail, last));
    }
    return hn::GetLane(hn::SumOfLanes(tag, hn::Add(s0, s1)));
  };
  const float count = static_cast<float>(d);
  const float mean = sum([](VF z) HWY_ATTR { return z; }) / count;
  const VF m = hn::Set(tag, mean);
  const float variance = sum([m](VF z) HWY_ATTR {
                           const VF centred = hn::Sub(z, m);
                           return hn::Mul(centred, centred);
                         }) /
                         count;
  return {mean, 1 / std::sqrt(variance + eps)};
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
