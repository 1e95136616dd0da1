#pragma once

#include <cstdint>

namespace hkt::train {

// 0 leaves PyTorch's own choice. To be called before the first operator.
void SetThreads(int64_t threads);
int64_t Threads();

// Keeps freed memory in the process: glibc would otherwise give every large tensor of a step back
// to the kernel and fetch it again, page by page, in the next step.
void TuneAllocator();

// Starts the program anew, in the same process, without glibc's per-thread cache, which can only be
// switched off before a start. The slivers that aligned blocks leave go into that cache and keep
// freed tensors from merging: with batches of many lengths a training run otherwise grows by
// megabytes a step. Does nothing the second time, on other C libraries, and where the environment
// already sets glibc.malloc.tcache_count.
void RestartWithoutThreadCache(char** argv);

// Largest resident memory of this process so far, in bytes; 0 where the system does not say.
int64_t PeakMemory();

}  // namespace hkt::train
