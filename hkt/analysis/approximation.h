#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hkt/analysis/subject.h"

namespace hkt::analysis {

enum class PairWeights { kUniform, kAttention };

struct ApproximationOptions {
  int64_t pairs = 4096;  // drawn from each sequence
  // kUniform: every valid pair alike. kAttention: a row alike, a key by the target's own attention;
  // half the total is then E KL of the attention to leading order (docs/theory.md, 3.7).
  PairWeights weights = PairWeights::kUniform;
  int64_t training_sequences = 0;  // that VisitTraining will see; fits are on all, 1/2 and 1/4
  uint64_t seed = 1;
};

// The error decomposition of every layer and head at L' = 1 … L levels, both sides measured, with
// the bounds of its terms, and what the pyramid loses per level (docs/theory.md, 3.1 to 3.4).
//   approximation.*: docs/analyze.md.
class ApproximationSubject : public Subject {
 public:
  // Training sequences, before Finish, for the optimisation term; random order.
  virtual void VisitTraining(const SequenceCapture& sequence,
                             const std::vector<SequenceLevels>& levels) = 0;
};

// Error for rotary layers.
std::unique_ptr<ApproximationSubject> MakeApproximationSubject(const std::vector<Layer>& layers,
                                                               const ApproximationOptions& options);

}  // namespace hkt::analysis
