#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "hkt/analysis/layer.h"
#include "hkt/data/dataset.h"
#include "hkt/train/checkpoint.h"

// What a model does to held-out sequences, layer by layer, a few sequences at a time, so that
// memory does not grow with their number.

namespace hkt::analysis {

// A finished run with the data its figures are taken on.
struct AnalysisRun {
  train::TrainedModel trained;  // in evaluation mode
  data::Dataset validation;
  data::Dataset train;   // for what is fitted; no figure is taken on it
  bool initial = false;  // the weights that the run began with, drawn anew from its seed
};

// Weights, validation and training split of a run folder; `data`, when not empty, replaces the path
// of the data. Throws Error as hkt::train::LoadTrained does, and for a validation split without
// tokens.
AnalysisRun LoadAnalysisRun(const std::string& run, const std::string& data = "");

// Puts a model with the weights before training in place of the run's.
void MakeInitial(AnalysisRun& run);

// The attention layers of the run's model, in order.
std::vector<Layer> ReadLayers(const AnalysisRun& run);

// `count` sequences with at least one token (all, if there are no more), drawn without order from
// all of the split by a fixed seed, ascending: the same for every run on these data.
std::vector<int64_t> ChooseExamples(const data::Dataset& dataset, int64_t count);

// The levels of one sequence in one layer, valid rows only, in double. T its length.
struct SequenceLevels {
  std::vector<at::Tensor> x;  // [T_l, d]: x^(l), what the layer's projections of level l read
  // [T, d]: the undecimated pyramid z^(l), the same weights with stride 1 and dilation s^(l-1);
  // x^(l)_tau = z^(l)_{tau s^l}.
  std::vector<at::Tensor> z;
};

// x [T, d], the layer's input (after its LayerNorm).
SequenceLevels Pyramid(const Layer& layer, const at::Tensor& x);

struct SequenceCapture {
  int64_t index = 0;               // in the data set
  int64_t length = 0;              // T >= 1
  std::vector<at::Tensor> inputs;  // of each layer, [T, d] in double: Pyramid(layer, inputs[i])
};

// Runs the model on these sequences, in their order, and shows each to `visit`; without gradients.
// Sequences without tokens are passed over. Memory: one batch and one sequence.
void VisitSequences(const train::Model& model, const data::Dataset& dataset,
                    std::span<const int64_t> indices,
                    const std::function<void(const SequenceCapture&)>& visit);

}  // namespace hkt::analysis
