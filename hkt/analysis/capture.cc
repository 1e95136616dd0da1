#include "hkt/analysis/capture.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>

#include <algorithm>
#include <optional>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/data/loader.h"
#include "hkt/data/task.h"
#include "hkt/data/tensors.h"
#include "hkt/io/run_folder.h"

namespace hkt::analysis {
namespace {

// Enough for the matrix products to be worth their calls; at T = 1024 and d = 64 some 10 MB.
constexpr int64_t kBatch = 8;
constexpr uint64_t kExampleStream = 0x616e616c79736973u;  // its own among the seeded streams
constexpr double kNormEpsilon = 1e-5;                     // of the model's LayerNorms

// One step of the undecimated pyramid: the taps of position i are i, i - dilation, …, zero before
// the start.
at::Tensor DilatedStep(const LevelWeights& level, const at::Tensor& z, int64_t dilation) {
  const int64_t T = z.size(0), k = level.depthwise_weight.size(1);
  at::Tensor y = level.depthwise_bias.expand({T, z.size(1)}).clone();
  for (int64_t a = 0; a < k && a * dilation < T; ++a) {
    const int64_t shift = a * dilation;
    y.slice(0, shift).add_(z.slice(0, 0, T - shift) * level.depthwise_weight.select(1, k - 1 - a));
  }
  y = at::linear(y, level.pointwise_weight, level.pointwise_bias);
  return at::gelu(at::layer_norm(y, {y.size(1)}, level.norm_weight, level.norm_bias, kNormEpsilon));
}

}  // namespace

AnalysisRun LoadAnalysisRun(const std::string& run, const std::string& data) {
  AnalysisRun result{train::LoadTrained(io::RunFolder(run), data), {}, {}, false};
  auto splits =
      data::LoadTask(result.trained.config.data, {data::Split::kTrain, data::Split::kValidation},
                     result.trained.task.classes)
          .splits;
  result.validation = std::move(splits.at(data::Split::kValidation));
  result.train = std::move(splits.at(data::Split::kTrain));
  Check(!result.validation.tokens.empty(), "the validation split of ", run,
        " has no tokens; name its data with --data");
  return result;
}

void MakeInitial(AnalysisRun& run) {
  run.trained.model = train::Model(run.trained.config, run.trained.task);
  run.trained.model.SetTraining(false);
  run.trained.figures.reset();
  run.trained.checksum.clear();
  run.initial = true;
}

std::vector<Layer> ReadLayers(const AnalysisRun& run) {
  const ModelConfig& config = run.trained.config.model;
  std::vector<Layer> layers;
  for (int64_t i = 0; i < config.layers; ++i) {
    layers.push_back(
        ReadLayer(run.trained.model.parameters(), Concat("blocks.", i, ".attention."), config));
  }
  return layers;
}

std::vector<int64_t> ChooseExamples(const data::Dataset& dataset, int64_t count) {
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    if (dataset.length(i) > 0) indices.push_back(i);
  }
  Random({kExampleStream}).Shuffle(indices);
  if (count < static_cast<int64_t>(indices.size())) indices.resize(static_cast<size_t>(count));
  return indices;
}

SequenceLevels Pyramid(const Layer& layer, const at::Tensor& x) {
  SequenceLevels levels;
  levels.z.push_back(x);
  levels.x.push_back(x);
  for (int64_t l = 1; l < layer.L; ++l) {
    levels.z.push_back(
        DilatedStep(layer.levels.at(static_cast<size_t>(l)), levels.z.back(), layer.step(l - 1)));
    levels.x.push_back(levels.z.back().slice(0, 0, std::nullopt, layer.step(l)).contiguous());
  }
  return levels;
}

void VisitSequences(const train::Model& model, const data::Dataset& dataset,
                    std::span<const int64_t> indices,
                    const std::function<void(const SequenceCapture&)>& visit) {
  const at::NoGradGuard no_grad;
  for (size_t begin = 0; begin < indices.size(); begin += kBatch) {
    const auto part = indices.subspan(begin, std::min<size_t>(kBatch, indices.size() - begin));
    const data::TensorBatch batch = data::ToTensors(data::Gather(dataset, part));
    std::vector<at::Tensor> inputs;
    model.Forward(batch.ids, batch.lengths, &inputs);
    for (size_t b = 0; b < part.size(); ++b) {
      SequenceCapture sequence{.index = part[b], .length = dataset.length(part[b]), .inputs = {}};
      if (sequence.length == 0) continue;
      for (const at::Tensor& layer : inputs) {
        sequence.inputs.push_back(layer[static_cast<int64_t>(b)]
                                      .slice(0, 0, sequence.length)
                                      .to(at::kDouble)
                                      .contiguous());
      }
      visit(sequence);
    }
  }
}

}  // namespace hkt::analysis
