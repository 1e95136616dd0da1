#pragma once

namespace hkt::bench {

// The most multiply-adds that a core of this processor does: 12 independent chains of FMA in
// registers, on the SIMD target that kernels run on, for about half a millisecond on each of
// `threads` threads at once. Returns nothing; its time is what is taken.
void FmaChains(int threads);

// Floating-point operations of one call, two a multiply-add.
double FmaChainFlops(int threads);

}  // namespace hkt::bench
