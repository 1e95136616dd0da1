#pragma once

#include <cstdint>

namespace hkt::kernels {

// Element types of inputs and outputs. Sums are always float32.
enum class Type { kFloat32, kBFloat16, kFloat16 };

constexpr int64_t SizeOf(Type type) { return type == Type::kFloat32 ? 4 : 2; }

// Where a tensor of four dimensions [B, H, T, D] lies: the address of element 0 and the distance of
// neighbours in elements, not bytes. Any strides, 0 (broadcast) and negative included; rows of
// neighbouring columns (column == 1) are the fast case.
template <class Pointer>
struct Strided {
  Pointer data = nullptr;
  int64_t batch = 0, head = 0, row = 0, column = 1;
};

using Input = Strided<const void*>;
using Output = Strided<void*>;

}  // namespace hkt::kernels
