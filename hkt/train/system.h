#pragma once

#include <cstdint>

namespace hkt::train {

// 0 leaves PyTorch's own choice. To be called before the first operator.
void SetThreads(int64_t threads);
int64_t Threads();

// Keeps freed memory in the process: glibc would otherwise give every large tensor of a step back
// to the kernel and fetch it again, page by page, in the next step.
void TuneAllocator();

// Gives the pages of all free memory back to the kernel. Batches of many lengths leave the heap
// full of holes of many sizes; glibc below 2.38 seldom fills them with aligned blocks, and a run
// would grow by megabytes a step.
void ReleaseFreeMemory();

// Largest resident memory of this process so far, in bytes; 0 where the system does not say.
int64_t PeakMemory();

}  // namespace hkt::train
