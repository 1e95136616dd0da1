#pragma once

#include <ATen/core/Tensor.h>

namespace hkt::ops {

// x itself; `parameter` gets a gradient of zeros. For a parameter that cannot change the result:
// distributed training and optimizers expect a gradient of every one.
at::Tensor WithUnused(const at::Tensor& x, const at::Tensor& parameter);

}  // namespace hkt::ops
