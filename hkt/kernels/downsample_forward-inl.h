// The forward pass: blocks of output rows, each from x to out at once.

#include <algorithm>
#include <cstdint>

#include "hkt/kernels/downsample.h"
#include "hkt/kernels/queue.h"
#include "hkt/kernels/scratch.h"

#if defined(HKT_KERNELS_DOWNSAMPLE_FORWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_DOWNSAMPLE_FORWARD_INL_H_
#undef HKT_KERNELS_DOWNSAMPLE_FORWARD_INL_H_
#else
#define HKT_KERNELS_DOWNSAMPLE_FORWARD_INL_H_
#endif

#include "hkt/kernels/downsample-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

class DownsampleForwardPass {
 public:
  DownsampleForwardPass(const DownsampleParams& params, const Output& out)
      : p_(params),
        out_(out),
        shape_(params),
        weights_(params, shape_, false),
        rows_(std::min(kDownsampleRows, shape_.Tl())),
        capacity_(RoundUp(rows_, kRows)) {
    Layout worker;
    x_ = worker.Take(shape_.TapFloats(rows_));
    y_ = worker.Take(capacity_ * shape_.width());
    z_ = worker.Take(capacity_ * shape_.width());
    buffer_ = worker.Take(shape_.width());
    worker_floats_ = worker.floats();
  }

  void Run(const Parallel& parallel) {
    const int64_t blocks = CeilDiv(shape_.Tl(), rows_), items = p_.B * blocks;
    const int64_t workers = std::clamp<int64_t>(parallel.workers, 1, items);
    const ScratchUse scratch(weights_.floats() + workers * worker_floats_);
    float* own = scratch.data() + weights_.floats();
    weights_.Pack(scratch.data());
    RunQueue(parallel, items, [&](int64_t worker, int64_t item) {
      Block(item / blocks, item % blocks * rows_, own + worker * worker_floats_);
    });
  }

 private:
  void Block(int64_t b, int64_t first, float* own) const {
    MaybePoison(own, worker_floats_);
    const int64_t n = std::min(rows_, shape_.Tl() - first);
    const TapRows x = shape_.Taps(b, first, n, own + x_);
    Convolve(p_, weights_, x, n, capacity_, own + y_, own + z_);
    const OutputRows out = HeadRows(out_, p_.type, b, 0);
    for (int64_t r = 0; r < n; ++r) {
      float* target = shape_.Target(out, first + r, own + buffer_);
      if (p_.OnlyDepthwise()) {
        Copy(own + y_ + r * kPanel, target);
      } else {
        NormAndGelu(own + z_ + r * kPanel, target);
      }
      shape_.Put(out, first + r, target, own + buffer_);
    }
  }

  void Copy(const float* HWY_RESTRICT row, float* HWY_RESTRICT out) const {
    const DF d;
    for (int64_t v = 0; v < shape_.vectors(); ++v)
      hn::StoreU(hn::Load(d, row + VectorAt(v, capacity_)), d, out + v * kLanes);
  }

  void NormAndGelu(const float* HWY_RESTRICT row, float* HWY_RESTRICT out) const {
    const DF d;
    const RowStatistics statistics = Statistics(row, capacity_, p_.d, p_.eps);
    const VF mean = hn::Set(d, statistics.mean), inverse = hn::Set(d, statistics.inverse);
    for (int64_t v = 0; v < shape_.vectors(); ++v) {
      const VF z = hn::Load(d, row + VectorAt(v, capacity_));
      const VF weight = hn::Load(d, weights_.norm_weight() + v * kLanes);
      const VF bias = hn::Load(d, weights_.norm_bias() + v * kLanes);
      const VF norm = hn::Mul(hn::Sub(z, mean), inverse);
      hn::StoreU(Gelu(hn::MulAdd(norm, weight, bias)), d, out + v * kLanes);
    }
  }

  const DownsampleParams& p_;
  const Output& out_;
  DownsampleShape shape_;
  DownsampleWeights weights_;
  int64_t rows_, capacity_;  // of a block, and in whole register tiles
  int64_t worker_floats_, x_, y_, z_, buffer_;
};

void DownForward(const DownsampleParams& params, const Output& out, const Parallel& parallel) {
  DownsampleForwardPass(params, out).Run(parallel);
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
