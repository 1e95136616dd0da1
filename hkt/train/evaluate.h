#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hkt/data/dataset.h"
#include "hkt/train/model.h"
#include "hkt/train/step.h"

namespace hkt::train {

struct Evaluation {
  double accuracy = 0, loss = 0;  // means over samples, not over batches; cross entropy in nats
  int64_t samples = 0;
  std::vector<int32_t> predicted;   // class of every sample, in the data set's order
  std::vector<double> probability;  // that the model gives it
};

// Every sample once, without gradients and without dropout; the model's mode is put back
// afterwards, and no random number is drawn. No value when asked to stop in between. Throws Error
// for an empty data set.
std::optional<Evaluation> Evaluate(Model model, const data::Dataset& dataset, int64_t batch,
                                   const ShouldStop& should_stop = {});

}  // namespace hkt::train
