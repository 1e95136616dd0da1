#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hkt/analysis/subject.h"

namespace hkt::analysis {

// Two kurtoses, and what they say of the scores (docs/theory.md, 3.5): Mardia's of every level's
// representation with the correction that it predicts beside what is measured, and that of the
// scores' own distribution, per layer, head and level, and fused.
//   kurtosis.*: docs/analyze.md.
// `pairs` are drawn from each sequence. Keeps the undecimated levels of the sequences until Finish,
// T d L doubles each and layer, up to `keep_bytes`; of those beyond only the scores count. Error
// for rotary layers.
std::unique_ptr<Subject> MakeKurtosisSubject(const std::vector<Layer>& layers, int64_t pairs = 4096,
                                             uint64_t seed = 1,
                                             int64_t keep_bytes = int64_t{1} << 30);

}  // namespace hkt::analysis
