#include "hkt/train/evaluate.h"

#include <ATen/core/Reduction.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/max.h>
#include <ATen/ops/softmax.h>

#include "hkt/base/error.h"
#include "hkt/data/loader.h"

namespace hkt::train {
namespace {

// Puts the model into evaluation mode, and back also when something throws.
class EvaluationMode {
 public:
  explicit EvaluationMode(Model& model) : model_(model), training_(model.is_training()) {
    model_.SetTraining(false);
  }
  ~EvaluationMode() { model_.SetTraining(training_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  Model& model_;
  bool training_;
};

}  // namespace

std::optional<Evaluation> Evaluate(Model model, const data::Dataset& dataset, int64_t batch,
                                   const ShouldStop& should_stop) {
  Check(dataset.size() > 0, "nothing to evaluate: the split has no samples");
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(model);
  Evaluation result;
  result.predicted.resize(static_cast<size_t>(dataset.size()));
  result.probability.resize(static_cast<size_t>(dataset.size()));
  int64_t correct = 0;
  double loss = 0;
  for (const auto& indices : data::PlanEvaluation(dataset, batch)) {
    if (should_stop && should_stop()) return std::nullopt;
    const data::TensorBatch input = data::ToTensors(data::Gather(dataset, indices));
    const at::Tensor logits = model.Forward(input.ids, input.lengths).to(at::kDouble);
    loss += at::cross_entropy_loss(logits, input.labels, {}, at::Reduction::Sum).item<double>();
    const auto [probability, predicted] = at::softmax(logits, 1).max(1);
    for (size_t i = 0; i < input.indices.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      const auto sample = static_cast<size_t>(input.indices[i]);
      result.predicted[sample] = static_cast<int32_t>(predicted.const_data_ptr<int64_t>()[row]);
      result.probability[sample] = probability.const_data_ptr<double>()[row];
      correct += result.predicted[sample] == dataset.labels[sample];
    }
    result.samples += static_cast<int64_t>(input.indices.size());
  }
  const auto samples = static_cast<double>(result.samples);
  result.accuracy = static_cast<double>(correct) / samples;
  result.loss = loss / samples;
  return result;
}

}  // namespace hkt::train
