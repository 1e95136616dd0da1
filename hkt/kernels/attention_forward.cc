#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hkt/kernels/attention_forward.cc"

// Which targets, then the loop over them, then what is compiled once a target.
// clang-format off
#include "hkt/kernels/targets.h"
#include <hwy/foreach_target.h>
#include "hkt/kernels/attention_forward-inl.h"
// clang-format on

#if HWY_ONCE
namespace hkt::kernels {

HWY_EXPORT(Forward);

void AttentionForward(const AttentionParams& params, const Output& out, float* lse,
                      const Parallel& parallel) {
  if (params.B == 0 || params.H == 0 || params.T == 0) return;
  ApplyTargetEnvironment();
  HWY_DYNAMIC_DISPATCH(Forward)(params, out, lse, parallel);
}

}  // namespace hkt::kernels
#endif
