#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "hkt/analysis/subject.h"
#include "hkt/train/model.h"

namespace hkt::analysis {

// Takes levels out of every layer and head of a model while it lives: their lambda is 0 and those
// of the other levels are what the softmax makes of their logits alone, that is, renormalised. A
// level's convolution branch goes with it. At least one level stays. The weights are put back, bit
// by bit.
class WithoutLevels {
 public:
  WithoutLevels(const train::Model& model, const std::vector<int64_t>& levels);
  ~WithoutLevels();
  WithoutLevels(const WithoutLevels&) = delete;
  WithoutLevels& operator=(const WithoutLevels&) = delete;

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> saved_;  // parameter, its values
};

// The sets to take out of L levels: each level alone, and, from three levels on, all coarse ones.
std::vector<std::vector<int64_t>> RemovedSets(int64_t levels);

// Accuracy on `examples` validation sequences (ChooseExamples) of the model as it is and with each
// set taken out. `progress` hears how many of how many evaluations are done.
//   levels_removed: docs/analyze.md.
Json LevelsRemoved(const AnalysisRun& run, int64_t examples,
                   const std::function<void(int64_t done, int64_t all)>& progress);

}  // namespace hkt::analysis
