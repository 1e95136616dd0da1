#include "hkt/train/system.h"

#include <ATen/Parallel.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>

#include <climits>

namespace hkt::train {

void SetThreads(int64_t threads) {
  if (threads > 0) at::set_num_threads(static_cast<int>(threads));
}

int64_t Threads() { return at::get_num_threads(); }

void TuneAllocator() {
#ifdef __GLIBC__
  // Up to 1 GiB from the heap, and the heap is not trimmed.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

void ReleaseFreeMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

int64_t PeakMemory() {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

}  // namespace hkt::train
