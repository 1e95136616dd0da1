#pragma once

namespace hkt::ops {

// Whether calls on the CPU may take the fused kernels of hkt/kernels; off, they take the composites
// of PyTorch's own operators, as other devices do. On by default; the environment variable
// HKT_FUSED=0 starts with off. For comparisons and bug reports: of the whole process, not to be
// changed while operators run.
bool FusedKernels();
void SetFusedKernels(bool on);

}  // namespace hkt::ops
