#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hkt/kernels/dropout.cc"

// clang-format off
#include "hkt/kernels/targets.h"  // before any header of Highway: it says which targets to compile
// clang-format on
#include "hkt/kernels/dropout.h"

#include <hwy/foreach_target.h>

#include "hkt/kernels/dropout-inl.h"

#if HWY_ONCE
namespace hkt::kernels {

HWY_EXPORT(DropoutPass);

void Dropout(const DropoutParams& params, const Parallel& parallel) {
  if (params.n == 0) return;
  ApplyTargetEnvironment();
  HWY_DYNAMIC_DISPATCH(DropoutPass)(params, parallel);
}

uint64_t PhiloxBits(uint64_t seed, uint64_t block) {
  uint32_t low = static_cast<uint32_t>(block);
  uint32_t high = static_cast<uint32_t>(seed >> 32) + static_cast<uint32_t>(block >> 32);
  uint32_t key = static_cast<uint32_t>(seed);
  for (int round = 0; round < kPhiloxRounds; ++round, key += kPhiloxWeyl) {
    const uint64_t product = kPhiloxMultiplier * low;
    low = static_cast<uint32_t>(product >> 32) ^ key ^ high;
    high = static_cast<uint32_t>(product);
  }
  return static_cast<uint64_t>(high) << 32 | low;
}

}  // namespace hkt::kernels
#endif
