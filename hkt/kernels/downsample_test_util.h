#pragma once

#include <cstdint>
#include <vector>

#include "hkt/kernels/downsample.h"
#include "hkt/kernels/reference/downsample.h"

namespace hkt::kernels {

// Unit roundoff of the elements of a tensor, and the smallest step between them.
struct Rounding {
  double unit, smallest;
};
Rounding RoundingOf(Type type);

// How far a float32 kernel may be from the reference, element by element: the rounding errors of
// every step, carried through the steps behind it by their derivatives, with the magnitudes that
// the reference meets. A sum of n terms is off by (n + 2) u sum |terms|, in whatever order.
struct DownsampleBounds {
  reference::Vector out;
  reference::DownsampleGradients gradients;
};
DownsampleBounds ErrorBounds(const reference::Downsample& params, const reference::Vector& d_out,
                             Type type);

}  // namespace hkt::kernels
