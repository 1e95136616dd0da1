#include "hkt/ops/path.h"

#include <atomic>

#include "hkt/base/environment.h"

namespace hkt::ops {
namespace {

std::atomic<bool>& Fused() {
  static std::atomic<bool> fused = EnvironmentSwitch("HKT_FUSED", true);
  return fused;
}

}  // namespace

bool FusedKernels() { return Fused(); }

void SetFusedKernels(bool on) { Fused() = on; }

}  // namespace hkt::ops
