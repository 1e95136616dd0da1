#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "hkt/kernels/parallel.h"

namespace hkt::kernels {

// Calls body(worker, item) for every item, in order of the items: a free worker takes the next one,
// so that put heaviest first they balance. Which worker takes which is left to chance.
template <class Body>
void RunQueue(const Parallel& parallel, int64_t items, const Body& body) {
  const int64_t workers = std::min(parallel.workers, items);
  if (workers <= 1) {
    for (int64_t item = 0; item < items; ++item) body(int64_t{0}, item);
    return;
  }
  std::atomic<int64_t> next{0};
  parallel.run(workers, [&](int64_t worker) {
    for (int64_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;)
      body(worker, item);
  });
}

// Waits until others have brought the counter to `count`. They must be at it already: items of a
// queue may wait for earlier items only, else a queue with one worker would wait for itself.
template <class Count>
void AwaitCount(const std::atomic<Count>& counter, Count count) {
  for (int spins = 0; counter.load(std::memory_order_acquire) != count; ++spins) {
    if (spins > 100) std::this_thread::yield();  // there may be more workers than cores
  }
}

}  // namespace hkt::kernels
