#pragma once

#include <cstdint>
#include <span>

#include "hkt/base/config.h"
#include "hkt/data/tensors.h"
#include "hkt/train/model.h"
#include "hkt/train/observer.h"
#include "hkt/train/optimizer.h"

namespace hkt::train {

// One optimizer step, the same for training, for --dry-run and for benchmarks: forward and backward
// of every micro-batch, each loss weighted by its share of the samples, so that the gradient is
// that of one batch of all of them; clipping; AdamW.
class TrainStep {
 public:
  // The model must be in training mode for dropout to act.
  TrainStep(Model model, const TrainConfig& config);

  // `step` counts from 0 and decides the learning rate.
  StepOutcome Run(std::span<const data::TensorBatch> micro_batches, int64_t step,
                  const ShouldStop& should_stop = {});

  AdamW& optimizer() { return optimizer_; }
  const AdamW& optimizer() const { return optimizer_; }

 private:
  Model model_;
  TrainConfig config_;
  AdamW optimizer_;
};

// Valid tokens of a batch.
int64_t TokenCount(const data::TensorBatch& batch);

}  // namespace hkt::train
