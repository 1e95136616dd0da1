#include "hkt/train/predict.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "hkt/data/tensors.h"
#include "hkt/train/checkpoint.h"

namespace hkt::train {
namespace {

// The samples of one window and what became of them.
struct Window {
  std::vector<Prediction> predictions;
  data::Dataset samples;        // those that are not blank
  std::vector<size_t> indices;  // of these in `predictions`
};

void Classify(const TrainedModel& trained, int64_t batch, Window& window) {
  Model model = trained.model;
  for (const auto& indices : data::PlanEvaluation(window.samples, batch)) {
    const data::TensorBatch input = data::ToTensors(data::Gather(window.samples, indices));
    const at::Tensor rows =
        at::softmax(model.Forward(input.ids, input.lengths).to(at::kDouble), 1).contiguous();
    const double* row = rows.const_data_ptr<double>();
    for (const int64_t index : input.indices) {
      Prediction& p = window.predictions[window.indices[static_cast<size_t>(index)]];
      p.probabilities.assign(row, row + rows.size(1));
      const auto best = std::max_element(p.probabilities.begin(), p.probabilities.end());
      p.label = best - p.probabilities.begin();
      p.name = trained.task.classes.at(static_cast<size_t>(p.label));
      p.probability = *best;
      row += rows.size(1);
    }
  }
}

}  // namespace

bool DatasetSource::Next(Sample* sample) {
  if (next_ == dataset_.size()) return false;
  const auto tokens = dataset_.sequence(next_++);
  *sample = {.tokens = {tokens.begin(), tokens.end()}, .truncated = false};
  return true;
}

Predictor::Predictor(const io::RunFolder& folder)
    : trained_(std::make_unique<const TrainedModel>(LoadTrained(folder))) {}
Predictor::~Predictor() = default;

const Config& Predictor::config() const { return trained_->config; }
const std::vector<std::string>& Predictor::classes() const { return trained_->task.classes; }

void Predictor::Predict(SampleSource& source, const PredictOptions& options,
                        const std::function<void(const std::vector<Prediction>&)>& write) const {
  const at::NoGradGuard no_grad;
  std::exception_ptr failure;
  int64_t number = 0;
  for (bool more = true; more;) {
    Window window;
    window.samples.channels = trained_->task.channels;
    while (static_cast<int64_t>(window.predictions.size()) < options.window) {
      Sample sample;
      try {
        if (!window.predictions.empty() && !source.Ready()) break;
        more = source.Next(&sample);
      } catch (...) {  // what was good before it is answered first
        failure = std::current_exception();
        more = false;
      }
      if (!more) break;
      Prediction& p = window.predictions.emplace_back();
      p.number = ++number;
      p.truncated = sample.truncated;
      p.blank = sample.tokens.empty();
      if (p.blank) continue;
      window.indices.push_back(window.predictions.size() - 1);
      window.samples.Add(sample.tokens, /*label=*/0);
    }
    Classify(*trained_, options.batch, window);
    if (!window.predictions.empty()) write(window.predictions);
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace hkt::train
