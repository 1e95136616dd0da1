#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

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

}  // namespace hkt::kernels
