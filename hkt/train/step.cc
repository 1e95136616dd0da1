#include "hkt/train/step.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/sum.h>

#include <cmath>

#include "hkt/train/schedule.h"
#include "hkt/train/weights.h"

namespace hkt::train {

int64_t TokenCount(const data::TensorBatch& batch) {
  return batch.lengths ? batch.lengths->sum().item<int64_t>()
                       : batch.ids.size(0) * batch.ids.size(1);
}

TrainStep::TrainStep(Model model, const TrainConfig& config)
    : model_(std::move(model)), config_(config), optimizer_(model_.parameters(), config) {}

StepOutcome TrainStep::Run(std::span<const data::TensorBatch> micro_batches, int64_t step,
                           const ShouldStop& should_stop) {
  StepOutcome outcome;
  outcome.rate = LearningRate(config_, step);
  for (const data::TensorBatch& batch : micro_batches) outcome.samples += batch.ids.size(0);
  optimizer_.ClearGradients();
  for (const data::TensorBatch& batch : micro_batches) {
    if (should_stop && should_stop()) {
      optimizer_.ClearGradients();
      return outcome;
    }
    const at::Tensor logits = model_.Forward(batch.ids, batch.lengths);
    at::Tensor loss = at::cross_entropy_loss(logits, batch.labels, {}, at::Reduction::Mean);
    if (micro_batches.size() > 1) {
      loss =
          loss.mul(static_cast<double>(batch.ids.size(0)) / static_cast<double>(outcome.samples));
    }
    loss.backward();
    outcome.loss += loss.item<double>();
    outcome.tokens += TokenCount(batch);
  }
  outcome.gradient_norm = optimizer_.GradientNorm();
  if (!std::isfinite(outcome.loss) || !std::isfinite(outcome.gradient_norm)) {
    outcome.end = StepOutcome::End::kSkipped;
    return outcome;
  }
  if (config_.clip > 0 && outcome.gradient_norm > config_.clip) {
    optimizer_.ScaleGradients(config_.clip / outcome.gradient_norm);
  }
  optimizer_.Step(outcome.rate);
  outcome.end = StepOutcome::End::kUpdated;
  return outcome;
}

}  // namespace hkt::train
