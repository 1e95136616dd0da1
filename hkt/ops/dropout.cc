// hkt::dropout, on the CPU alone: other devices have PyTorch's own.

#include "hkt/ops/dropout.h"

#include <ATen/ops/dropout.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <torch/library.h>

#include <cmath>
#include <limits>

#include "hkt/kernels/dropout.h"
#include "hkt/ops/checks.h"
#include "hkt/ops/ops.h"
#include "hkt/ops/parallel.h"

namespace hkt::ops {
namespace {

// Work of an element in the unit of PoolFor (parallel.h), as memory bounds it.
constexpr double kCostOfElement = 64;

kernels::Type TypeFor(at::ScalarType type) {
  return type == at::kBFloat16 ? kernels::Type::kBFloat16
         : type == at::kHalf   ? kernels::Type::kFloat16
                               : kernels::Type::kFloat32;
}

at::Tensor DropoutCpu(const at::Tensor& x, const at::Tensor& seed, double p) {
  CheckDropout(x, seed, p);
  if (x.scalar_type() == at::kDouble) {
    const at::Tensor factor =
        DropoutCpu(at::ones(x.sizes(), x.options().dtype(at::kFloat)), seed, p).to(at::kDouble);
    return x.mul(factor);
  }
  const at::Tensor source = x.contiguous();
  at::Tensor out = at::empty(x.sizes(), x.options());
  kernels::Dropout({.n = x.numel(),
                    .type = TypeFor(x.scalar_type()),
                    .seed = static_cast<uint64_t>(seed.item<int64_t>()),
                    .threshold = static_cast<uint32_t>(std::lround(65536 * p)),
                    .x = source.const_data_ptr(),
                    .out = out.mutable_data_ptr()},
                   PoolFor(kCostOfElement * static_cast<double>(x.numel())));
  return out;
}

}  // namespace

at::Tensor Dropout(const at::Tensor& x, double p) {
  if (!x.is_cpu()) return at::dropout(x, p, /*train=*/true);
  const at::Tensor seed = at::randint(std::numeric_limits<int64_t>::max(), {}, at::kLong);
  return dropout(x, seed, p);
}

TORCH_LIBRARY_IMPL(hkt, CPU, m) { m.impl("dropout", DropoutCpu); }

}  // namespace hkt::ops
