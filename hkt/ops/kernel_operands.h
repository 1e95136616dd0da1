#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

#include "hkt/kernels/tensor.h"
#include "hkt/ops/path.h"

namespace hkt::ops {

// The type that kernels take, or nothing: float64, and everything where kernels are switched off,
// goes through the composite.
inline std::optional<kernels::Type> KernelType(at::ScalarType type) {
  if (!FusedKernels()) return std::nullopt;
  switch (type) {
    case at::kFloat:
      return kernels::Type::kFloat32;
    case at::kBFloat16:
      return kernels::Type::kBFloat16;
    case at::kHalf:
      return kernels::Type::kFloat16;
    default:
      return std::nullopt;
  }
}

// [B, H, T, D] as a kernel reads it: whatever its strides, without a copy.
inline kernels::Input ReadHeads(const at::Tensor& x) {
  return {x.const_data_ptr(), x.stride(0), x.stride(1), x.stride(2), x.stride(3)};
}
inline kernels::Output WriteHeads(const at::Tensor& x) {
  return {x.mutable_data_ptr(), x.stride(0), x.stride(1), x.stride(2), x.stride(3)};
}

// [B, T, d], the same without heads.
inline kernels::Input ReadRows(const at::Tensor& x) {
  return {x.const_data_ptr(), x.stride(0), 0, x.stride(1), x.stride(2)};
}
inline kernels::Output WriteRows(const at::Tensor& x) {
  return {x.mutable_data_ptr(), x.stride(0), 0, x.stride(1), x.stride(2)};
}

}  // namespace hkt::ops
