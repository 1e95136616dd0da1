#include "hkt/train/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>

#include <limits>
#include <mutex>
#include <set>
#include <string_view>

#include "hkt/base/error.h"
#include "hkt/base/version.h"
#include "hkt/io/checksum.h"
#include "hkt/io/config_json.h"
#include "hkt/io/json.h"
#include "hkt/io/safetensors.h"
#include "hkt/train/run.h"
#include "hkt/train/weights.h"

namespace hkt::train {
namespace {

using Json = nlohmann::ordered_json;

// Keys of the metadata and prefixes of the tensors.
constexpr const char* kProgress = "progress";
constexpr const char* kFingerprint = "data_fingerprint";
constexpr const char* kConfig = "config";
constexpr const char *kValidation = "validation", *kOverfitBatch = "overfit_batch";
constexpr const char* kClasses = "classes";
constexpr const char* kModelPrefix = "model.";
constexpr const char* kOptimizerPrefix = "optimizer.";
constexpr const char* kAveragePrefix = "ema.";
constexpr const char* kRandomPrefix = "random.";

// Of a Progress: older versions did not write these.
const std::set<std::string_view> kLaterFields = {"multiply_adds", "evaluations_since_best",
                                                 "window_multiply_adds", "cpu_seconds"};

// The one list of what a Progress holds; both directions visit it.
template <class Self, class Visitor>
void VisitProgress(Self& p, Visitor&& v) {
  v("step", p.step);
  v("epoch", p.position.epoch);
  v("batch", p.position.batch);
  v("samples", p.samples);
  v("tokens", p.tokens);
  v("skipped", p.skipped);
  v("skipped_in_a_row", p.skipped_in_a_row);
  v("elapsed_seconds", p.elapsed_seconds);
  v("cpu_seconds", p.cpu_seconds);
  v("step_seconds", p.step_seconds);
  v("multiply_adds", p.multiply_adds);
  v("evaluated_step", p.evaluated_step);
  v("best", p.best);
  v("last", p.last);
  v("evaluations_since_best", p.evaluations_since_best);
  v("window_loss", p.window_loss);
  v("window_steps", p.window_steps);
  v("window_tokens", p.window_tokens);
  v("window_seconds", p.window_seconds);
  v("window_multiply_adds", p.window_multiply_adds);
}

Json FieldToJson(int64_t value) { return value; }
Json FieldToJson(double value) { return value; }
Json FieldToJson(const ValidationPoint& point) {
  return {{"step", point.step}, {"accuracy", point.accuracy}, {"loss", point.loss}};
}
Json FieldToJson(const std::optional<ValidationPoint>& point) {
  return point ? FieldToJson(*point) : Json(nullptr);
}

void FieldFromJson(const Json& json, int64_t& value) { value = json.get<int64_t>(); }
// What was not finite is null.
void FieldFromJson(const Json& json, double& value) {
  value = json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}
void FieldFromJson(const Json& json, std::optional<ValidationPoint>& point) {
  point.reset();
  if (json.is_null()) return;
  point = ValidationPoint{.step = json.at("step").get<int64_t>()};
  FieldFromJson(json.at("accuracy"), point->accuracy);
  FieldFromJson(json.at("loss"), point->loss);
}

// Of a task whose classes its data decide. Weights of other programs have no names for them.
std::vector<std::string> StoredClasses(const io::SafetensorsFile& file) {
  std::vector<std::string> classes;
  const std::string name = file.path().string() + ", " + kClasses;
  if (const auto found = file.metadata().find(kClasses); found != file.metadata().end()) {
    try {
      io::ParseJson<Json>(found->second, name).get_to(classes);
    } catch (const nlohmann::json::exception& error) {
      Fail(name, ": must be a list of names: ", error.what());
    }
    return classes;
  }
  const std::vector<int64_t>& shape = file.at("head.bias").shape;
  Check(shape.size() == 1 && shape[0] <= data::kMaxClasses, file.path().string(),
        ": head.bias is no list of at most ", data::kMaxClasses, " classes");
  for (int64_t i = 0; i < shape[0]; ++i) classes.push_back(std::to_string(i));
  return classes;
}

void CheckVersionOf(const io::SafetensorsFile& file) {
  io::CheckWrittenBy(file.Meta(io::kVersionKey), file.path().string());
}

// A damaged one names the older states that --keep-states left.
io::SafetensorsFile OpenState(const io::RunFolder& folder, const std::filesystem::path& path) {
  std::string older;
  for (const int64_t step : folder.kept_states()) {
    if (path != folder.state_after(step))
      older += Concat(older.empty() ? "" : " or ", "--from-step ", step);
  }
  if (older.empty()) return io::SafetensorsFile(path);
  try {
    return io::SafetensorsFile(path);
  } catch (const Error& error) {
    Fail(error.what(), "; or go on from an older state with --resume ", older);
  }
}

// config.json may have been edited, or damaged, since the file was written.
void CheckConfigUnedited(const io::SafetensorsFile& file, const io::RunFolder& folder,
                         const Config& config) {
  const std::string name = file.path().string();
  Config saved;
  io::FromJson(io::ParseJson<Json>(file.Meta(kConfig), name + ", " + kConfig), saved, name);
  std::set<std::string> fixed;
  Config::Visit(saved, [&](std::string_view field, auto&, std::string_view, const Limits&) {
    if (!ChangeableOnResume().contains(std::string(field))) fixed.emplace(field);
  });
  const auto differences = io::Differences(saved, config, fixed);
  if (differences.empty()) return;
  std::string message = Concat(folder.config().string(), " is not what the run began with: ");
  for (size_t i = 0; i < differences.size(); ++i) message += (i ? "; " : "") + differences[i];
  Fail(message, "; put it back, or start a new run with another --out");
}

}  // namespace

Json ToJson(const Progress& progress) {
  Json json;
  VisitProgress(progress,
                [&](const char* name, const auto& value) { json[name] = FieldToJson(value); });
  return json;
}

bool Progress::operator==(const Progress& other) const { return ToJson(*this) == ToJson(other); }

Progress ProgressFromJson(const Json& json, const std::string& what) {
  Progress progress;
  // What an old run did not count cannot be known.
  progress.multiply_adds = progress.window_multiply_adds = progress.cpu_seconds =
      std::numeric_limits<double>::quiet_NaN();
  try {
    VisitProgress(progress, [&](const char* name, auto& value) {
      if (json.contains(name) || !kLaterFields.contains(name)) FieldFromJson(json.at(name), value);
    });
  } catch (const nlohmann::json::exception& error) {
    Fail(what, ": the progress of the run is not readable: ", error.what());
  }
  return progress;
}

std::string Fingerprint(const data::Dataset& train, const data::Dataset& validation) {
  io::Xxh3Stream stream;
  for (const data::Dataset* dataset : {&train, &validation}) {
    stream.Update(std::as_bytes(std::span(dataset->offsets)));
    stream.Update(std::as_bytes(std::span(dataset->tokens)));
    stream.Update(std::as_bytes(std::span(dataset->labels)));
  }
  return stream.Hex();
}

at::Tensor RandomState() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void SaveState(const io::RunFolder& folder, const RunTensors& tensors, const at::Tensor& random,
               const Progress& progress, const Config& config, const std::string& fingerprint) {
  TensorPack pack;
  pack.Add(kModelPrefix, tensors.model.parameters());
  pack.Add(kOptimizerPrefix, tensors.optimizer.State());
  if (tensors.average != nullptr) pack.Add(kAveragePrefix, tensors.average->State());
  pack.Add(kRandomPrefix, {{"cpu", random}});
  io::WriteSafetensors(folder.state(), pack.views(),
                       {{io::kVersionKey, std::string(Version())},
                        {kConfig, io::CompactJson(io::ToJson(config))},
                        {kProgress, io::CompactJson(ToJson(progress))},
                        {kFingerprint, fingerprint}});
}

Progress LoadState(const io::RunFolder& folder, const std::filesystem::path& path,
                   const RunTensors& tensors, const Config& config,
                   const std::string& fingerprint) {
  const io::SafetensorsFile file = OpenState(folder, path);
  const std::string name = file.path().string();
  CheckVersionOf(file);
  Check(file.Meta(kFingerprint) == fingerprint, name,
        ": the run began with other data than these; name its data with --data, or start anew with "
        "another --out");
  CheckConfigUnedited(file, folder, config);
  const Progress progress =
      ProgressFromJson(io::ParseJson<Json>(file.Meta(kProgress), name + ", " + kProgress), name);
  at::Tensor random = RandomState();
  CopyInto(file, kRandomPrefix, {{"cpu", random}});
  CopyInto(file, kOptimizerPrefix, tensors.optimizer.State());
  if (tensors.average != nullptr) CopyInto(file, kAveragePrefix, tensors.average->State());
  CopyInto(file, kModelPrefix, tensors.model.parameters());
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  generator.set_state(random);
  return progress;
}

void SaveModel(const io::RunFolder& folder, const Model& model, const Config& config,
               const ValidationPoint& point, const std::vector<std::string>& classes) {
  TensorPack pack;
  pack.Add("", model.parameters());
  io::Metadata metadata = {
      {io::kVersionKey, std::string(Version())},
      {"format", "pt"},  // what other readers of safetensors look for: PyTorch's layout of weights
      {kConfig, io::CompactJson(io::ToJson(config))},
      {FiguresName(config), io::CompactJson(FieldToJson(point))}};
  if (!classes.empty()) metadata[kClasses] = io::CompactJson(classes);
  io::WriteSafetensors(folder.model(), pack.views(), metadata);
}

TrainedModel LoadTrained(const io::RunFolder& folder, const std::string& data) {
  Config config = folder.ReadConfig();
  if (!data.empty()) config.data.data = data;
  Check(std::filesystem::exists(folder.model()), "no weights in ", folder.root().string(),
        ": there is no ", folder.model().string(),
        " before the first evaluation; continue with 'hkt train --resume --out ",
        folder.root().string(), "'");
  const io::SafetensorsFile file(folder.model());
  if (file.metadata().contains(io::kVersionKey)) {
    CheckVersionOf(file);
    CheckConfigUnedited(file, folder, config);
  }
  data::TaskInfo task = data::Describe(config.data);
  if (task.classes.empty()) task.classes = StoredClasses(file);
  TrainedModel trained{config, task, Model(config, task), file.checksum(), std::nullopt};
  CopyInto(file, "", trained.model.parameters());
  trained.model.SetTraining(false);
  trained.figures = StoredFigures(file);
  return trained;
}

const char* FiguresName(const Config& config) {
  return config.train.overfit_batch ? kOverfitBatch : kValidation;
}

std::optional<ValidationPoint> StoredFigures(const io::SafetensorsFile& file) {
  for (const char* name : {kValidation, kOverfitBatch}) {
    const auto found = file.metadata().find(name);
    if (found == file.metadata().end()) continue;
    std::optional<ValidationPoint> point;
    FieldFromJson(io::ParseJson<Json>(found->second, file.path().string() + ", " + name), point);
    return point;
  }
  return std::nullopt;
}

}  // namespace hkt::train
