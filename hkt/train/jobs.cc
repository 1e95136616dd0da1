#include "hkt/train/jobs.h"

#include <algorithm>
#include <utility>

#include "hkt/base/error.h"
#include "hkt/base/version.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/train/evaluate.h"
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
  }
  return "";
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
  const auto [task, splits] =
      data::LoadTask(config.data, {data::Split::kTrain, data::Split::kValidation});
  const data::Dataset& train = splits.at(data::Split::kTrain);
  const data::Dataset& validation = splits.at(data::Split::kValidation);

  CheckModel(config, task);  // what cannot be built is said before a folder is made
  const OpenRun run = OpenRunFolder(request, config);
  Trainer trainer(run.folder, config, task, train, validation);
  if (request.resume) trainer.Resume();
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
  Check(summary.end != TrainEnd::kFinished || trainer.progress().best, "no evaluation of ",
        run.folder.root().string(),
        " gave a finite loss, so there are no weights; lower --lr or --score-gain and train again "
        "with another --out");
  summary.progress = trainer.progress();
  summary.peak_memory_bytes = PeakMemory();
  return summary;
}

Json ToJson(const TrainSummary& summary) {
  const Progress& p = summary.progress;
  Json json;
  json["run"] = summary.start.folder.root().string();
  json["end"] = EndName(summary.end);
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
  json["tokens_per_second"] =
      p.step_seconds > 0 ? Json(static_cast<double>(p.tokens) / p.step_seconds) : Json(nullptr);
  json["seconds"] = p.elapsed_seconds;
  json["step_seconds"] = p.step_seconds;
  json["peak_memory_bytes"] = summary.peak_memory_bytes;
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
                     {"validation", PointToJson(trained.validation)}};
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
