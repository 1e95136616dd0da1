#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "hkt/analysis/capture.h"

namespace hkt::analysis {

using Json = nlohmann::ordered_json;

// A part of the analysis that looks at held-out sequences, one at a time, and keeps sums. Figures
// that are not finite become null in JSON.
class Subject {
 public:
  virtual ~Subject() = default;
  // levels[i] of layer i.
  virtual void Visit(const SequenceCapture& sequence,
                     const std::vector<SequenceLevels>& levels) = 0;
  // After the last sequence.
  virtual Json Finish() = 0;
};

}  // namespace hkt::analysis
