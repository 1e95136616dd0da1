#pragma once

// The SIMD targets that kernels are compiled for, and the choice among them. Include this before
// any header of Highway. Compiled: AVX-512 (AVX3), AVX2, NEON, and SCALAR, the portable one. Left
// out, as each costs compile and test time: SSSE3 and SSE4 (x86 processors without AVX2 are older
// than 2013; SCALAR serves them), AVX3_DL (nothing in it that a float kernel uses). SVE and RVV
// have vectors without a size, of which no array of accumulators can be made; NEON serves the
// first.

#ifdef HWY_DISABLED_TARGETS
#error "include hkt/kernels/targets.h before any header of Highway"
#endif
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

// The portable target is SCALAR whatever the compiler: what it does with NaN is tested.
#define HWY_BROKEN_EMU128 1

#include <cstdint>
#include <string>
#include <vector>

namespace hkt::kernels {

// Names of the targets that are compiled in and that this processor runs, best first.
std::vector<std::string> UsableTargets();

// Names of the targets that are compiled in, best first.
std::vector<std::string> CompiledTargets();

// The one that kernels run on: the best usable one, or what the environment variable HKT_TARGET or
// SetTarget names.
std::string ChosenTarget();

// Forces a target ("AVX2"); the empty string gives the choice back. Throws hkt::Error with the
// usable names for any other. Not while kernels run.
void SetTarget(const std::string& name);

// Applies HKT_TARGET, once; a kernel's facade calls it before it dispatches. Throws hkt::Error.
void ApplyTargetEnvironment();

// Fills scratch memory with NaN before every piece of work: a test that passes with it never reads
// what it did not write. Off by default; the environment variable HKT_POISON_SCRATCH=1 turns it on.
void SetScratchPoison(bool on);
bool ScratchPoison();

}  // namespace hkt::kernels
