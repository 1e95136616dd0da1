#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hkt/kernels/downsample.cc"

// clang-format off
#include "hkt/kernels/targets.h"  // before any header of Highway: it says which targets to compile
// clang-format on
#include "hkt/kernels/downsample.h"

#include <hwy/foreach_target.h>

#include <algorithm>

#include "hkt/kernels/downsample_backward-inl.h"
#include "hkt/kernels/downsample_forward-inl.h"

#if HWY_ONCE
namespace hkt::kernels {

HWY_EXPORT(DownForward);
HWY_EXPORT(DownBackward);

void DownsampleForward(const DownsampleParams& params, const Output& out,
                       const Parallel& parallel) {
  if (params.B == 0 || params.T == 0) return;
  ApplyTargetEnvironment();
  HWY_DYNAMIC_DISPATCH(DownForward)(params, out, parallel);
}

void DownsampleBackward(const DownsampleParams& params, const Input& d_out,
                        const DownsampleGradients& gradients, const Parallel& parallel) {
  if (params.B == 0 || params.T == 0) {  // sums over nothing
    const int64_t d = params.d;
    std::fill_n(gradients.depthwise_weight, d * params.k, 0.0F);
    std::fill_n(gradients.depthwise_bias, d, 0.0F);
    if (params.OnlyDepthwise()) return;
    std::fill_n(gradients.pointwise_weight, d * d, 0.0F);
    for (float* vector : {gradients.pointwise_bias, gradients.norm_weight, gradients.norm_bias})
      std::fill_n(vector, d, 0.0F);
    return;
  }
  ApplyTargetEnvironment();
  HWY_DYNAMIC_DISPATCH(DownBackward)(params, d_out, gradients, parallel);
}

}  // namespace hkt::kernels
#endif
