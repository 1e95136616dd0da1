#include "hkt/kernels/scratch.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

#include "hkt/kernels/targets.h"

namespace hkt::kernels {
namespace {

// Page faults of fresh memory would cost a short call more than its arithmetic.
struct Kept {
  float* data = nullptr;
  int64_t bytes = 0;
  bool used = false;

  ~Kept() { std::free(data); }
  void Release() {
    std::free(data);
    data = nullptr;
    bytes = 0;
  }
};

thread_local Kept kept;

}  // namespace

ScratchUse::ScratchUse(int64_t floats) {
  const int64_t bytes = (std::max<int64_t>(floats, 1) * 4 + 4095) / 4096 * 4096;
  if (kept.used || kept.bytes < bytes) {
    if (!kept.used) kept.Release();
    data_ = static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>(bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
    if (kept.used) return;
    kept.data = data_;
    kept.bytes = bytes;
  }
  data_ = kept.data;
  kept.used = true;
}

ScratchUse::~ScratchUse() {
  if (data_ != kept.data) {  // taken while this thread's own was in use
    std::free(data_);
    return;
  }
  kept.used = false;
  if (kept.bytes > kScratchKept) kept.Release();
}

void ReleaseScratch() {
  if (!kept.used) kept.Release();
}

void MaybePoison(float* data, int64_t floats) {
  if (ScratchPoison()) std::fill_n(data, floats, std::numeric_limits<float>::quiet_NaN());
}

}  // namespace hkt::kernels
