#pragma once

#include <cstdint>
#include <vector>

#include "hkt/kernels/reference/downsample.h"
#include "hkt/testing/element.h"

namespace hkt::kernels {

// How far a float32 kernel may be from the reference, element by element: the rounding errors of
// every step, carried through the steps behind it by their derivatives, with the magnitudes that
// the reference meets. A sum of n terms is off by (n + 2) u sum |terms|, in whatever order.
struct DownsampleBounds {
  reference::Vector out;
  reference::DownsampleGradients gradients;
};
DownsampleBounds ErrorBounds(const reference::Downsample& params, const reference::Vector& d_out,
                             testing::Element element);

}  // namespace hkt::kernels
