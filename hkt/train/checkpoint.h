#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "hkt/data/task.h"
#include "hkt/io/run_folder.h"
#include "hkt/io/safetensors.h"
#include "hkt/train/average.h"
#include "hkt/train/model.h"
#include "hkt/train/observer.h"
#include "hkt/train/optimizer.h"

namespace hkt::train {

nlohmann::ordered_json ToJson(const Progress& progress);
// Throws Error naming `what` when a field is missing or of another type; of those that runs of
// older versions lack, counts keep their defaults and what nobody counted is NaN.
Progress ProgressFromJson(const nlohmann::ordered_json& json, const std::string& what);

// XXH3 of tokens, offsets and labels of both splits: a run goes on with the data that it began
// with, or not at all.
std::string Fingerprint(const data::Dataset& train, const data::Dataset& validation);

// The tensors of a run, beside the generator.
struct RunTensors {
  const Model& model;
  const AdamW& optimizer;
  const WeightAverage* average = nullptr;  // with --ema
};

// state.safetensors: weights, moments, the average, the generator of dropout, and in the metadata
// the progress and the fingerprint. `random` is the state of PyTorch's CPU generator before the
// next step.
void SaveState(const io::RunFolder& folder, const RunTensors& tensors, const at::Tensor& random,
               const Progress& progress, const Config& config, const std::string& fingerprint);

// Fills the tensors from `path`, which is the folder's state or one that was kept, and sets
// PyTorch's CPU generator. Throws Error where the file is damaged, does not fit the model, was
// written by a newer version, or the data are others.
Progress LoadState(const io::RunFolder& folder, const std::filesystem::path& path,
                   const RunTensors& tensors, const Config& config, const std::string& fingerprint);

// model.safetensors: the weights under their own names; configuration, validation figures and the
// names of the classes (where there are some) in the metadata.
void SaveModel(const io::RunFolder& folder, const Model& model, const Config& config,
               const ValidationPoint& point, const std::vector<std::string>& classes = {});

// What the figures that training took are of: "validation", or "overfit_batch" with
// --overfit-batch, where they say nothing about other data.
const char* FiguresName(const Config& config);

// The figures of the weights in model.safetensors, under either name; those of other programs have
// none.
std::optional<ValidationPoint> StoredFigures(const io::SafetensorsFile& file);

at::Tensor RandomState();

// A trained model, for evaluation and prediction.
struct TrainedModel {
  Config config;
  data::TaskInfo task;
  Model model;           // in evaluation mode
  std::string checksum;  // of model.safetensors; empty for weights of other programs
  // Of these weights, as training found them, on what FiguresName says.
  std::optional<ValidationPoint> figures;
};

// config.json and model.safetensors of a run. `data`, when not empty, replaces the path of the
// data.
TrainedModel LoadTrained(const io::RunFolder& folder, const std::string& data = "");

}  // namespace hkt::train
