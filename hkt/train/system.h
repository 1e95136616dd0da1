#pragma once

#include <cstdint>

namespace hkt::train {

// UsageError below 0 and for more threads than the machine could sensibly run (64, or four a
// hardware thread): they would hang or crash the run-time. 0 is PyTorch's own choice.
void CheckThreads(int64_t threads);
// Checks and sets. To be called before the first operator.
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

// Memory of the machine in bytes; 0 where the system does not say.
double PhysicalMemory();

// Processor time of all threads of this process so far, in seconds, the system's share included; 0
// where the system does not say.
double CpuSeconds();

// Largest resident memory of this process so far, in bytes; 0 where the system does not say.
int64_t PeakMemory();

}  // namespace hkt::train
