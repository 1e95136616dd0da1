#pragma once

#include <memory>
#include <vector>

#include "hkt/analysis/moments.h"
#include "hkt/analysis/subject.h"

namespace hkt::analysis {

// The score kernel of every layer, head and level (theory.md 1): spectra of the forms and of their
// Gram matrices on tokens, ranks beside their bounds, locality. `moments` is read at the end.
//   kernel.levels, .concatenated, .gram, .distance: docs/analyze.md.
std::unique_ptr<Subject> MakeKernelSubject(const std::vector<Layer>& layers,
                                           const LevelMoments& moments);

// Sigma [d, d] of tokens to that of the tokens (x, 1): the one does not vary.
at::Tensor AugmentedCovariance(const Layer& layer, const at::Tensor& sigma);

}  // namespace hkt::analysis
