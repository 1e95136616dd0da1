#include "hkt/train/predict.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/softmax.h>

#include <algorithm>

#include "hkt/base/error.h"
#include "hkt/data/tensors.h"
#include "hkt/train/checkpoint.h"

namespace hkt::train {

Predictions Predict(const io::RunFolder& folder, const std::vector<std::string>& texts) {
  TrainedModel trained = LoadTrained(folder);
  const at::NoGradGuard no_grad;
  Predictions result{trained.task.classes, std::vector<Prediction>(texts.size())};
  data::Dataset dataset;
  for (size_t i = 0; i < texts.size(); ++i) {
    Check(!texts[i].empty(), "text ", i + 1, " is empty; give one text a line");
    try {
      dataset.Add(data::Encode(trained.config.data, texts[i], &result.texts[i].truncated),
                  /*label=*/0);
    } catch (const Error& error) {
      Fail("text ", i + 1, ": ", error.what());
    }
  }
  for (const auto& indices : data::PlanEvaluation(dataset, trained.config.train.batch)) {
    const data::TensorBatch batch = data::ToTensors(data::Gather(dataset, indices));
    const at::Tensor rows =
        at::softmax(trained.model.Forward(batch.ids, batch.lengths).to(at::kDouble), 1)
            .contiguous();
    const double* row = rows.const_data_ptr<double>();
    for (int64_t index : batch.indices) {
      Prediction& prediction = result.texts[static_cast<size_t>(index)];
      prediction.probabilities.assign(row, row + rows.size(1));
      const auto best =
          std::max_element(prediction.probabilities.begin(), prediction.probabilities.end());
      prediction.label = best - prediction.probabilities.begin();
      prediction.name = trained.task.classes.at(static_cast<size_t>(prediction.label));
      prediction.probability = *best;
      row += rows.size(1);
    }
  }
  return result;
}

std::vector<std::string> SplitLines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    begin = end + 1;
  }
  return lines;
}

}  // namespace hkt::train
