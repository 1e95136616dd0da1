#include "hkt/kernels/targets.h"

#include <hwy/highway.h>

#include <atomic>
#include <cstdlib>

#include "hkt/base/environment.h"
#include "hkt/base/error.h"

namespace hkt::kernels {
namespace {

std::vector<std::string> Names(int64_t targets) {
  std::vector<std::string> names;
  // A lower bit is a better target.
  for (; targets != 0; targets &= targets - 1)
    names.emplace_back(hwy::TargetName(targets & -targets));
  return names;
}

int64_t Usable() { return hwy::SupportedTargets() & HWY_TARGETS; }

// What the processor runs, whatever was forced.
int64_t UsableUnforced() {
  static const int64_t usable = Usable();
  return usable;
}

void Force(const std::string& name, const char* source) {
  if (name.empty()) {
    hwy::SetSupportedTargetsForTest(0);
    return;
  }
  for (int64_t rest = UsableUnforced(); rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    if (name == hwy::TargetName(target)) {
      hwy::SetSupportedTargetsForTest(target);
      return;
    }
  }
  std::string usable;
  for (const std::string& other : UsableTargets()) usable += (usable.empty() ? "" : ", ") + other;
  Fail(source, " is '", name,
       "'; it must be one of the SIMD targets this processor runs: ", usable);
}

std::atomic<bool>& Poison() {
  static std::atomic<bool> poison = EnvironmentSwitch("HKT_POISON_SCRATCH", false);
  return poison;
}

}  // namespace

void ApplyTargetEnvironment() {
  static const bool done = [] {
    UsableUnforced();
    if (const char* name = std::getenv("HKT_TARGET")) Force(name, "HKT_TARGET");
    return true;
  }();
  static_cast<void>(done);
}

std::vector<std::string> UsableTargets() { return Names(UsableUnforced()); }

std::vector<std::string> CompiledTargets() { return Names(HWY_TARGETS); }

std::string ChosenTarget() {
  ApplyTargetEnvironment();
  return Names(Usable()).front();
}

void SetTarget(const std::string& name) {
  ApplyTargetEnvironment();
  Force(name, "the SIMD target");
}

void SetScratchPoison(bool on) { Poison() = on; }

bool ScratchPoison() { return Poison(); }

}  // namespace hkt::kernels
