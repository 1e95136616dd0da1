#include "hkt/ops/path.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace hkt::ops {
namespace {

std::atomic<bool>& Fused() {
  static std::atomic<bool> fused = [] {
    const char* value = std::getenv("HKT_FUSED");
    return value == nullptr || std::string_view(value) != "0";
  }();
  return fused;
}

}  // namespace

bool FusedKernels() { return Fused(); }

void SetFusedKernels(bool on) { Fused() = on; }

}  // namespace hkt::ops
