// The backward pass: blocks of output rows, each from x and d_out to d_x at once, the forward
// recomputed.
//
// A token t has a gradient from the outputs tau with tau s - (k-1) <= t <= tau s. The block of
// outputs first … first + owned - 1 writes d_x of the tokens (first - 1) s < t <= (first + owned -
// 1) s; for them it needs d_y of floor((k-1) / s) outputs more, its halo, which the next block
// computes again: blocks stay independent, and every sum is made once, in one order.
//
// Gradients of weights: blocks in order are cut into groups, at positions that sizes alone give;
// each group adds up its own, and these are added in order. Memory: at most 64 groups of d^2 sums,
// 16 MiB or 8 groups of them, beside the packed weights and some rows a worker.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hkt/kernels/downsample.h"
#include "hkt/kernels/queue.h"
#include "hkt/kernels/scratch.h"

#if defined(HKT_KERNELS_DOWNSAMPLE_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_DOWNSAMPLE_BACKWARD_INL_H_
#undef HKT_KERNELS_DOWNSAMPLE_BACKWARD_INL_H_
#else
#define HKT_KERNELS_DOWNSAMPLE_BACKWARD_INL_H_
#endif

#include "hkt/kernels/downsample-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// Rows of a group: enough that adding the group's d^2 sums to the others' is little beside the 6 d
// operations a row that went into each of them.
constexpr int64_t kGroupRows = 128;
// Most groups, as long as more workers are rare, and most bytes of their sums, unless 8 groups have
// more.
constexpr int64_t kMostGroups = 64;
constexpr int64_t kGroupBytes = int64_t{16} << 20;
// Floats of the sums that a worker adds up at a time.
constexpr int64_t kReduceFloats = 8192;

// d_w[a] += sum_r d_y[r] x[r, a], one panel, kTaps taps.
template <int kTaps>
HWY_NOINLINE void DepthwiseGradientPanel(const TapRows& x, int64_t n, const float* HWY_RESTRICT d_y,
                                         float* HWY_RESTRICT d_w, int64_t ldw) {
  const DF d;
  VF w0[kTaps], w1[kTaps];
  HKT_UNROLL for (int a = 0; a < kTaps; ++a) {
    w0[a] = hn::Load(d, d_w + a * ldw);
    w1[a] = hn::Load(d, d_w + a * ldw + kLanes);
  }
  const float* HWY_RESTRICT row = x.data;
  for (int64_t r = 0; r < n; ++r, row += x.row, d_y += kPanel) {
    const VF g0 = hn::Load(d, d_y), g1 = hn::Load(d, d_y + kLanes);
    const float* HWY_RESTRICT source = row;
    HKT_UNROLL for (int a = 0; a < kTaps; ++a, source += x.tap) {
      w0[a] = hn::MulAdd(g0, hn::LoadU(d, source), w0[a]);
      w1[a] = hn::MulAdd(g1, hn::LoadU(d, source + kLanes), w1[a]);
    }
  }
  HKT_UNROLL for (int a = 0; a < kTaps; ++a) {
    hn::Store(w0[a], d, d_w + a * ldw);
    hn::Store(w1[a], d, d_w + a * ldw + kLanes);
  }
}

class DownsampleBackwardPass {
 public:
  DownsampleBackwardPass(const DownsampleParams& params, const Input& d_out,
                         const DownsampleGradients& gradients)
      : p_(params),
        d_out_(d_out),
        gradients_(gradients),
        shape_(params),
        weights_(params, shape_, true),
        width_(shape_.width()),
        halo_((params.k - 1) / params.stride),
        // At most a quarter of the rows is computed twice.
        owned_(std::min(std::max(kDownsampleRows - halo_, 3 * halo_), shape_.Tl())),
        rows_(std::min(owned_ + halo_, shape_.Tl())),
        capacity_(RoundUp(rows_, kRows)) {
    Layout worker, group;
    x_ = worker.Take(shape_.TapFloats(rows_));
    y_ = worker.Take(capacity_ * width_);
    z_ = worker.Take(capacity_ * width_);
    if (!p_.OnlyDepthwise()) {
      d_z_ = worker.Take(capacity_ * width_);
      halo_sums_ = worker.Take(3 * width_);
    }
    buffer_ = worker.Take(width_);
    worker_floats_ = worker.floats();

    d_taps_ = group.Take(p_.k * width_);
    d_depthwise_bias_ = group.Take(width_);
    if (!p_.OnlyDepthwise()) {
      d_pointwise_ = group.Take(width_ * width_);
      d_rows_ = group.Take(3 * width_);
    }
    group_floats_ = group.floats();
  }

  void Run(const Parallel& parallel) {
    const int64_t blocks = CeilDiv(shape_.Tl(), owned_), items = p_.B * blocks;
    const int64_t groups = std::min({std::max<int64_t>(8, kGroupBytes / (4 * group_floats_)),
                                     kMostGroups, items, CeilDiv(p_.B * shape_.Tl(), kGroupRows)});
    const int64_t workers = std::clamp<int64_t>(parallel.workers, 1, groups);
    const ScratchUse scratch(weights_.floats() + groups * group_floats_ + workers * worker_floats_);
    float* sums = scratch.data() + weights_.floats();
    float* own = sums + groups * group_floats_;
    weights_.Pack(scratch.data());
    RunQueue(parallel, groups, [&](int64_t worker, int64_t group) {
      float* mine = sums + group * group_floats_;
      std::memset(mine, 0, static_cast<size_t>(group_floats_) * sizeof(float));
      for (int64_t i = group * items / groups; i < (group + 1) * items / groups; ++i) {
        Block(i / blocks, i % blocks * owned_, mine, own + worker * worker_floats_);
      }
    });
    const auto reduce = [&](int64_t, int64_t piece) HWY_ATTR {
      const int64_t from = piece * kReduceFloats;
      const int64_t to = std::min(from + kReduceFloats, group_floats_);
      for (int64_t g = 1; g < groups; ++g) {
        const float* HWY_RESTRICT other = sums + g * group_floats_;
        for (int64_t i = from; i < to; ++i) sums[i] += other[i];
      }
    };
    RunQueue(parallel, CeilDiv(group_floats_, kReduceFloats), reduce);
    Write(sums);
  }

 private:
  void Block(int64_t b, int64_t first, float* sums, float* own) const {
    MaybePoison(own, worker_floats_);
    const int64_t owned = std::min(owned_, shape_.Tl() - first);
    const int64_t n = std::min(owned + halo_, shape_.Tl() - first);
    const TapRows x = shape_.Taps(b, first, n, own + x_);
    const InputRows d_out = HeadRows(d_out_, p_.type, b, 0).From(first);
    float* d_y = own + z_;  // z is not needed any more
    if (p_.OnlyDepthwise()) {
      for (int64_t r = 0; r < n; ++r) Spread(DOutRow(d_out, r, own + buffer_), d_y + r * kPanel);
    } else {
      DY(x, d_out, owned, n, sums, own, d_y);
    }
    DepthwiseGradient(x, owned, d_y, sums);
    DX(b, first, owned, n, d_y, own + buffer_);
  }

  // A row into its panels.
  void Spread(const float* HWY_RESTRICT row, float* HWY_RESTRICT panels) const {
    const DF d;
    for (int64_t v = 0; v < shape_.vectors(); ++v)
      hn::Store(hn::LoadU(d, row + v * kLanes), d, panels + VectorAt(v, capacity_));
  }

  // Back through GELU, norm and pointwise map. d_y stands where z did.
  void DY(const TapRows& x, const InputRows& d_out, int64_t owned, int64_t n, float* sums,
          float* own, float* d_y) const {
    float *y = own + y_, *z = own + z_, *d_z = own + d_z_;
    Convolve(p_, weights_, x, n, capacity_, y, z);
    std::fill(own + halo_sums_, own + halo_sums_ + 3 * width_, 0.0F);
    for (int64_t r = 0; r < n; ++r) {
      NormAndGeluGradient(DOutRow(d_out, r, own + buffer_), z + r * kPanel, d_z + r * kPanel,
                          r < owned ? sums + d_rows_ : own + halo_sums_);
    }
    for (int64_t c = 0; c < width_; c += kPanel) {
      float* panel = d_z + c * capacity_;
      std::fill(panel + n * kPanel, panel + RoundUp(n, kRows) * kPanel, 0.0F);
    }

    // z = y W^T + b
    TransposedPanelProduct(d_z, y, capacity_, owned, p_.d, p_.d, width_, sums + d_pointwise_);
    PanelProduct(d_z, capacity_, n, weights_.pointwise_backward(), p_.d, p_.d, weights_.zeros(),
                 d_y);
  }

  const float* DOutRow(const InputRows& d_out, int64_t r, float* buffer) const {
    if (width_ == p_.d) return ReadRow(d_out, r, p_.d, buffer);
    shape_.ReadPadded(d_out, r, buffer);
    return buffer;
  }

  // out = GELU(h), h = norm * weight + bias, norm = (z - mean) * inverse:
  //   d_h = d_out GELU'(h)   d_norm = d_h weight
  //   d_z = inverse (d_norm - mean(d_norm) - norm mean(d_norm norm))
  // z becomes norm. `sums` [3][width]: d_h norm, d_h and d_z over rows, the gradients of norm
  // weight, norm bias and pointwise bias.
  void NormAndGeluGradient(const float* HWY_RESTRICT d_out, float* HWY_RESTRICT z,
                           float* HWY_RESTRICT d_z, float* HWY_RESTRICT sums) const {
    const DF d;
    const RowStatistics statistics = Statistics(z, capacity_, p_.d, p_.eps);
    const VF mean = hn::Set(d, statistics.mean), inverse = hn::Set(d, statistics.inverse);
    const int64_t vectors = shape_.vectors();
    // Columns behind d have weight 0 and add nothing.
    VF sum = hn::Zero(d), product = hn::Zero(d);
    for (int64_t v = 0; v < vectors; ++v) {
      const int64_t at = VectorAt(v, capacity_), c = v * kLanes;
      const VF weight = hn::Load(d, weights_.norm_weight() + c);
      const VF bias = hn::Load(d, weights_.norm_bias() + c);
      const VF norm = hn::Mul(hn::Sub(hn::Load(d, z + at), mean), inverse);
      const VF slope = GeluDerivative(hn::MulAdd(norm, weight, bias));
      const VF d_h = hn::Mul(hn::LoadU(d, d_out + c), slope);
      const VF d_norm = hn::Mul(d_h, weight);
      sum = hn::Add(sum, d_norm);
      product = hn::MulAdd(d_norm, norm, product);
      hn::Store(norm, d, z + at);
      hn::Store(d_norm, d, d_z + at);
      hn::Store(hn::MulAdd(d_h, norm, hn::Load(d, sums + c)), d, sums + c);
      hn::Store(hn::Add(d_h, hn::Load(d, sums + width_ + c)), d, sums + width_ + c);
    }
    const float count = static_cast<float>(p_.d);
    const VF m1 = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, sum)) / count);
    const VF m2 = hn::Set(d, hn::GetLane(hn::SumOfLanes(d, product)) / count);
    float* HWY_RESTRICT d_bias = sums + 2 * width_;
    for (int64_t v = 0; v < vectors; ++v) {
      const int64_t at = VectorAt(v, capacity_), c = v * kLanes;
      const VF centred = hn::Sub(hn::Load(d, d_z + at), m1);
      const VF result = hn::Mul(inverse, hn::NegMulAdd(hn::Load(d, z + at), m2, centred));
      hn::Store(result, d, d_z + at);
      hn::Store(hn::Add(result, hn::Load(d, d_bias + c)), d, d_bias + c);
    }
  }

  // y[r] = b + sum_a w[a] x[r, a]
  void DepthwiseGradient(const TapRows& x, int64_t n, const float* d_y, float* sums) const {
    const DF d;
    for (int64_t c = 0; c < width_; c += kPanel) {
      const float* panel = d_y + c * capacity_;
      ForTaps(p_.k, [&]<int kTaps>(int64_t a) {
        const TapRows taps = {x.data + a * x.tap + c, x.row, x.tap};
        DepthwiseGradientPanel<kTaps>(taps, n, panel, sums + d_taps_ + a * width_ + c, width_);
      });
    }
    for (int64_t v = 0; v < shape_.vectors(); ++v) {
      float* bias = sums + d_depthwise_bias_ + v * kLanes;
      const float* column = d_y + VectorAt(v, capacity_);
      VF sum = hn::Load(d, bias);
      for (int64_t r = 0; r < n; ++r) sum = hn::Add(sum, hn::Load(d, column + r * kPanel));
      hn::Store(sum, d, bias);
    }
  }

  // d_x[t] = sum_tau w[t - tau s + (k-1)] d_y[tau], over the tokens of the block.
  void DX(int64_t b, int64_t first, int64_t owned, int64_t n, const float* HWY_RESTRICT d_y,
          float* HWY_RESTRICT buffer) const {
    const DF d;
    const OutputRows d_x = HeadRows(gradients_.x, p_.type, b, 0);
    const int64_t s = p_.stride, k = p_.k;
    const int64_t begin = first == 0 ? 0 : (first - 1) * s + 1;
    const int64_t end = first + owned == shape_.Tl() ? p_.T : (first + owned - 1) * s + 1;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t from = CeilDiv(t, s), to = std::min((t + k - 1) / s, first + n - 1);
      float* HWY_RESTRICT target = shape_.Target(d_x, t, buffer);
      for (int64_t c = 0; c < width_; c += kPanel) {
        VF sum0 = hn::Zero(d), sum1 = hn::Zero(d);
        for (int64_t tau = from; tau <= to; ++tau) {
          const float* HWY_RESTRICT w = weights_.taps() + (t - tau * s + k - 1) * width_ + c;
          const float* HWY_RESTRICT g = d_y + c * capacity_ + (tau - first) * kPanel;
          sum0 = hn::MulAdd(hn::Load(d, w), hn::Load(d, g), sum0);
          sum1 = hn::MulAdd(hn::Load(d, w + kLanes), hn::Load(d, g + kLanes), sum1);
        }
        hn::StoreU(sum0, d, target + c);
        hn::StoreU(sum1, d, target + c + kLanes);
      }
      shape_.Put(d_x, t, target, buffer);
    }
  }

  void Write(const float* sums) const {
    const int64_t n = p_.d;
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t a = 0; a < p_.k; ++a)
        gradients_.depthwise_weight[c * p_.k + a] = sums[d_taps_ + a * width_ + c];
    }
    std::copy_n(sums + d_depthwise_bias_, n, gradients_.depthwise_bias);
    if (p_.OnlyDepthwise()) return;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        gradients_.pointwise_weight[i * n + j] =
            sums[d_pointwise_ + j / kPanel * kPanel * width_ + i * kPanel + j % kPanel];
      }
    }
    std::copy_n(sums + d_rows_, n, gradients_.norm_weight);
    std::copy_n(sums + d_rows_ + width_, n, gradients_.norm_bias);
    std::copy_n(sums + d_rows_ + 2 * width_, n, gradients_.pointwise_bias);
  }

  const DownsampleParams& p_;
  const Input& d_out_;
  const DownsampleGradients& gradients_;
  DownsampleShape shape_;
  DownsampleWeights weights_;
  int64_t width_, halo_, owned_, rows_, capacity_;
  int64_t worker_floats_, x_, y_, z_, d_z_ = 0, halo_sums_ = 0, buffer_;
  int64_t group_floats_, d_taps_, d_depthwise_bias_, d_pointwise_ = 0, d_rows_ = 0;
};

void DownBackward(const DownsampleParams& params, const Input& d_out,
                  const DownsampleGradients& gradients, const Parallel& parallel) {
  DownsampleBackwardPass(params, d_out, gradients).Run(parallel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
