#include "hkt/train/jobs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/base/version.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/io/safetensors.h"
#include "hkt/train/evaluate.h"
#include "hkt/train/fusion.h"
#include "hkt/train/report.h"
#include "hkt/train/system.h"
#include "hkt/train/trainer.h"

namespace hkt::train {
namespace {

using Json = nlohmann::ordered_json;

double MajorityShare(const data::Dataset& dataset, int64_t classes) {
  const std::vector<double> shares = data::LabelShares(dataset, classes);
  return shares.empty() ? 0 : *std::max_element(shares.begin(), shares.end());
}

const char* EndName(TrainEnd end) {
  switch (end) {
    case TrainEnd::kFinished:
      return "finished";
    case TrainEnd::kStopped:
      return "stopped";
    case TrainEnd::kTimeUp:
      return "time_up";
    case TrainEnd::kPatience:
      return "stopped_early";
  }
  return "";
}

// The sequences of the first step, as a data set of their own.
data::Dataset FirstStep(const data::Dataset& train, const TrainConfig& config) {
  const auto plan =
      data::PlanEpoch(train, config.batch, static_cast<uint64_t>(config.seed), /*epoch=*/0);
  data::Dataset first;
  first.channels = train.channels;
  for (size_t i = 0; i < plan.size() && static_cast<int64_t>(i) < config.accumulate; ++i) {
    for (const int64_t index : plan[i])
      first.Add(train.sequence(index), train.labels[static_cast<size_t>(index)]);
  }
  return first;
}

// Of the weights that are kept; empty where there are none or where they cannot be read, which the
// next command will say.
Json KeptFusion(const io::RunFolder& folder) {
  try {
    return DescribeFusion(FusionLogits(io::SafetensorsFile(folder.model())));
  } catch (const Error&) {
    return Json::object();
  }
}

Json PerSecond(double count, double seconds) {
  return seconds > 0 && std::isfinite(count) ? Json(count / seconds) : Json(nullptr);
}

Json PointToJson(const std::optional<ValidationPoint>& point) {
  if (!point) return nullptr;
  return {{"step", point->step}, {"accuracy", point->accuracy}, {"loss", point->loss}};
}

}  // namespace

TrainSummary TrainRun(const RunRequest& request,
                      const std::function<std::unique_ptr<TrainObserver>(const TrainStart&)>& begin,
                      const ShouldStop& should_stop) {
  const Config config = PlanRun(request);
  SetThreads(config.train.threads);
  TuneAllocator();
  data::LoadedTask loaded =
      data::LoadTask(config.data, {data::Split::kTrain, data::Split::kValidation});
  const data::TaskInfo& task = loaded.info;
  auto& splits = loaded.splits;
  if (config.train.overfit_batch) {
    data::Dataset first = FirstStep(splits.at(data::Split::kTrain), config.train);
    splits[data::Split::kValidation] = first;
    splits[data::Split::kTrain] = std::move(first);
  }
  const data::Dataset& train = splits.at(data::Split::kTrain);
  const data::Dataset& validation = splits.at(data::Split::kValidation);

  CheckModel(config, task);  // what cannot be built is said before a folder is made
  const OpenRun run = OpenRunFolder(request, config);
  Trainer trainer(run.folder, config, task, train, validation);
  if (request.resume) trainer.Resume(request.from_step);
  TrainSummary summary{
      .start = {.folder = run.folder,
                .config = config,
                .task = task,
                .parameters = trainer.model().parameter_count(),
                .train_samples = train.size(),
                .validation_samples = validation.size(),
                .truncated = train.truncated + validation.truncated,
                .progress = trainer.progress(),
                .resumed = request.resume,
                .finished = trainer.finished()},
      .progress = trainer.progress(),
      .majority_share = MajorityShare(validation, static_cast<int64_t>(task.classes.size()))};
  const std::unique_ptr<TrainObserver> observer = begin(summary.start);
  trainer.Watch(observer.get());
  summary.end = trainer.Run(should_stop);
  Check((summary.end != TrainEnd::kFinished && summary.end != TrainEnd::kPatience) ||
            trainer.progress().best,
        "no evaluation of ", run.folder.root().string(),
        " gave a finite loss, so there are no weights; lower --lr or --score-gain and train again "
        "with another --out");
  summary.progress = trainer.progress();
  summary.peak_memory_bytes = PeakMemory();
  summary.fusion = KeptFusion(run.folder);
  return summary;
}

std::string NextCommand(const TrainSummary& summary) {
  const std::string run = summary.start.folder.root().string();
  const bool ended = summary.end == TrainEnd::kFinished || summary.end == TrainEnd::kPatience;
  return (ended ? "hkt eval " : "hkt train --resume --out ") + ShellWord(run);
}

Json ToJson(const TrainSummary& summary) {
  const Progress& p = summary.progress;
  Json json;
  json["run"] = summary.start.folder.root().string();
  json["end"] = EndName(summary.end);
  json["overfit_batch"] = summary.start.config.train.overfit_batch;
  json["config"] = io::ToJson(summary.start.config);
  json["parameters"] = summary.start.parameters;
  json["train_samples"] = summary.start.train_samples;
  json["validation_samples"] = summary.start.validation_samples;
  json["truncated"] = summary.start.truncated;
  json["majority_share"] = summary.majority_share;
  json["steps"] = p.step;
  json["skipped"] = p.skipped;
  json["samples"] = p.samples;
  json["tokens"] = p.tokens;
  json["best"] = PointToJson(p.best);
  json["last"] = PointToJson(p.last);
  json["evaluations_since_best"] = p.evaluations_since_best;
  json["tokens_per_second"] = PerSecond(static_cast<double>(p.tokens), p.step_seconds);
  json["flops_per_second"] = PerSecond(kFlopsPerMultiplyAdd * p.multiply_adds, p.step_seconds);
  json["seconds"] = p.elapsed_seconds;
  json["cpu_seconds"] = p.cpu_seconds;
  json["step_seconds"] = p.step_seconds;
  json["peak_memory_bytes"] = summary.peak_memory_bytes;
  json.update(summary.fusion);
  const io::RunFolder& folder = summary.start.folder;
  json["files"] = {{"weights", folder.model().string()},
                   {"state", folder.state().string()},
                   {"metrics", folder.metrics().string()}};
  json["next"] = NextCommand(summary);
  return json;
}

Json EvaluateRun(const EvaluateRequest& request) {
  const data::Split split = data::ParseSplit(request.split);
  const io::RunFolder folder(request.run);
  SetThreads(request.threads);
  TrainedModel trained = LoadTrained(folder, request.data);
  const auto splits = data::LoadTask(trained.config.data, {split}, trained.task.classes).splits;
  const data::Dataset& dataset = splits.at(split);
  const auto evaluation =
      Evaluate(trained.model, dataset, request.batch.value_or(trained.config.train.batch));

  Json json;
  json[io::kVersionKey] = std::string(Version());
  json["run"] = folder.root().string();
  json["model"] = trained.config.model.model;
  json["task"] = trained.task.name;
  json["split"] = request.split;
  json["weights"] = {{"checksum", trained.checksum},
                     {FiguresName(trained.config), PointToJson(trained.figures)}};
  json["loss"] = evaluation->loss;
  json["truncated"] = dataset.truncated;
  json.update(ClassificationReport(trained.task, dataset, evaluation->predicted));
  json["labels"] = dataset.labels;
  json["predicted"] = evaluation->predicted;
  json["probability"] = evaluation->probability;
  return json;
}

void WriteEvaluation(const std::string& run, const Json& report) {
  io::WriteFileAtomically(io::RunFolder(run).evaluation(), io::PrettyJson(report));
}

}  // namespace hkt::train
