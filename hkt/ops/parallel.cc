// The one file with a parallel loop: at::parallel_for is an inline template, silently serial where
// -fopenmp is missing, so one place has it and one test sees two threads run.

#include "hkt/ops/parallel.h"

#include <ATen/Parallel.h>

#include <algorithm>

namespace hkt::ops {
namespace {

// Ten microseconds of a core's work at 100 GFLOP/s: what waking a sleeping thread costs.
constexpr double kGrain = 1 << 20;

}  // namespace

kernels::Parallel PoolFor(double flops) {
  if (at::in_parallel_region()) return {};
  const double most = at::get_num_threads();
  kernels::Parallel pool;
  pool.workers = static_cast<int64_t>(std::clamp(flops / kGrain, 1.0, most));
  if (pool.workers == 1) return pool;
  pool.run = [](int64_t workers, const std::function<void(int64_t)>& body) {
    at::parallel_for(0, workers, /*grain_size=*/1, [&](int64_t begin, int64_t end) {
      for (int64_t worker = begin; worker < end; ++worker) body(worker);
    });
  };
  return pool;
}

}  // namespace hkt::ops
