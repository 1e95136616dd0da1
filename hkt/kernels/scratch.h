#pragma once

#include <cstdint>

namespace hkt::kernels {

// Lays out pieces of a buffer of floats, every piece on a cache line of its own.
class Layout {
 public:
  // The offset of a piece of n floats.
  int64_t Take(int64_t n) {
    const int64_t offset = floats_;
    floats_ += (n + 15) / 16 * 16;
    return offset;
  }
  int64_t floats() const { return floats_; }

 private:
  int64_t floats_ = 0;
};

// Memory for `floats` floats, aligned to cache lines, with any contents. It belongs to the calling
// thread, which gets the same memory again at its next call: a kernel takes all it needs at once.
// Memory beyond kScratchKept bytes goes back to the system when ScratchUse ends. Throws
// std::bad_alloc.
constexpr int64_t kScratchKept = int64_t{32} << 20;

class ScratchUse {
 public:
  explicit ScratchUse(int64_t floats);
  ~ScratchUse();
  ScratchUse(const ScratchUse&) = delete;
  ScratchUse& operator=(const ScratchUse&) = delete;

  float* data() const { return data_; }

 private:
  float* data_;
};

// Gives back what the calling thread keeps.
void ReleaseScratch();

// With ScratchPoison (targets.h) fills it with NaN, else nothing.
void MaybePoison(float* data, int64_t floats);

}  // namespace hkt::kernels
