#pragma once

#include <ATen/core/Tensor.h>

namespace hkt::ops {

// Dropout with probability p, for training: hkt::dropout with a seed drawn from PyTorch's default
// generator where x is on the CPU, PyTorch's own elsewhere. (PyTorch's own on a CPU draws the mask
// one number after the other, 6 ns an element on one thread.)
at::Tensor Dropout(const at::Tensor& x, double p);

}  // namespace hkt::ops
