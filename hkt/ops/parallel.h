#pragma once

#include "hkt/kernels/parallel.h"

namespace hkt::ops {

// The loop that kernels run in: PyTorch's own pool and its number of threads (at::set_num_threads).
// Serial inside a parallel region, so that nothing nests, and where `flops`, the work in
// floating-point operations, is not worth waking another thread.
kernels::Parallel PoolFor(double flops);

}  // namespace hkt::ops
