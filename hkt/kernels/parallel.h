#pragma once

#include <cstdint>
#include <functional>

namespace hkt::kernels {

// How a kernel runs on several threads. `run(workers, body)` calls body(worker) once for every
// worker = 0 … workers - 1, at once or one after the other in any order, and returns when all have
// returned. Work is handed out inside, by a queue, so that uneven pieces balance; results are
// bitwise the same for every number of workers. The default runs in the calling thread.
struct Parallel {
  int64_t workers = 1;
  std::function<void(int64_t workers, const std::function<void(int64_t worker)>& body)> run =
      [](int64_t count, const std::function<void(int64_t)>& body) {
        for (int64_t worker = 0; worker < count; ++worker) body(worker);
      };
};

}  // namespace hkt::kernels
