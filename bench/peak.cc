#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peak.cc"

#include "bench/peak.h"

#include <ATen/Parallel.h>

// Which targets, then the loop over them, then what is compiled once a target.
// clang-format off
#include "hkt/kernels/targets.h"
#include <hwy/foreach_target.h>
#include "hkt/kernels/tile-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace hkt::bench {
namespace HWY_NAMESPACE {
namespace k = hkt::kernels::HWY_NAMESPACE;
namespace hn = hwy::HWY_NAMESPACE;

// Enough chains for the latency of FMA times the units: 4 x 2.
constexpr int kChains = 12;
constexpr int64_t kSteps = 20000;

HWY_NOINLINE float Chains() {
  const k::DF d;
  k::VF chain[kChains];
  HKT_UNROLL for (int i = 0; i < kChains; ++i) chain[i] = hn::Set(d, static_cast<float>(i));
  const k::VF x = hn::Set(d, 0.999F), y = hn::Set(d, 1e-3F);
  for (int64_t step = 0; step < kSteps; ++step) {
    HKT_UNROLL for (int i = 0; i < kChains; ++i) chain[i] = hn::MulAdd(chain[i], x, y);
  }
  k::VF sum = chain[0];
  HKT_UNROLL for (int i = 1; i < kChains; ++i) sum = hn::Add(sum, chain[i]);
  return hn::GetLane(sum);
}

double ChainFlops() { return 2.0 * kSteps * kChains * static_cast<double>(k::kLanes); }

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hkt::bench {

HWY_EXPORT(Chains);
HWY_EXPORT(ChainFlops);

void FmaChains(int threads) {
  kernels::ApplyTargetEnvironment();
  // The same pool that the kernels use, so that its threads need not be woken first.
  at::parallel_for(0, threads, 1, [](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      volatile float keep = HWY_DYNAMIC_DISPATCH(Chains)();
      static_cast<void>(keep);
    }
  });
}

double FmaChainFlops(int threads) {
  kernels::ApplyTargetEnvironment();
  return HWY_DYNAMIC_DISPATCH(ChainFlops)() * threads;
}

}  // namespace hkt::bench
#endif
