#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hkt/kernels/attention_backward.cc"

// Which targets, then the loop over them, then what is compiled once a target.
// clang-format off
#include "hkt/kernels/targets.h"
#include <hwy/foreach_target.h>
#include "hkt/kernels/attention_backward-inl.h"
// clang-format on

#if HWY_ONCE
namespace hkt::kernels {

HWY_EXPORT(Backward);

void AttentionBackward(const AttentionParams& params, const Input& out, const float* lse,
                       const Input& d_out, const AttentionGradients& gradients,
                       const Parallel& parallel) {
  if (params.B == 0 || params.Hkv == 0 || params.T == 0) return;  // without queries: zeros
  ApplyTargetEnvironment();
  HWY_DYNAMIC_DISPATCH(Backward)(params, out, lse, d_out, gradients, parallel);
}

}  // namespace hkt::kernels
#endif
