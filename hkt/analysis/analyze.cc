#include "hkt/analysis/analyze.h"

#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "hkt/analysis/approximation.h"
#include "hkt/analysis/cost.h"
#include "hkt/analysis/direction.h"
#include "hkt/analysis/example.h"
#include "hkt/analysis/kernel.h"
#include "hkt/analysis/kurtosis_subject.h"
#include "hkt/analysis/mixture.h"
#include "hkt/analysis/published.h"
#include "hkt/analysis/removed.h"
#include "hkt/base/error.h"
#include "hkt/base/version.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/io/run_folder.h"
#include "hkt/train/system.h"

namespace hkt::analysis {
namespace {

constexpr int64_t kSequences = 64;  // for everything but the levels removed

// A figure that does not exist is null, as it is in the file.
void ClearNonFinite(Json& json) {
  if (json.is_number_float() && !std::isfinite(json.get<double>())) json = nullptr;
  if (!json.is_structured()) return;
  for (Json& item : json) ClearNonFinite(item);
}

Json ShapeToJson(const AnalysisRun& run) {
  const ModelConfig& m = run.trained.config.model;
  return {{"layers", m.layers},
          {"heads", m.heads},
          {"kv_heads", *m.kv_heads},
          {"d_model", m.d_model},
          {"head_width", m.d_model / m.heads},
          {"levels", *m.levels},
          {"stride", m.stride},
          {"kernel_size", m.kernel_size},
          {"hybrid", *m.hybrid},
          {"psd", m.psd},
          {"causal", !m.bidirectional},
          {"rotary", m.rotary},
          {"bias", m.bias},
          {"score_gain", m.score_gain},
          {"seq_len", run.trained.task.seq_len},
          {"vocabulary", run.trained.task.vocabulary}};
}

Json WeightsToJson(const AnalysisRun& run) {
  Json json = {{"kind", run.initial ? "initial" : "trained"}};
  json["checksum"] = run.trained.checksum.empty() ? Json(nullptr) : Json(run.trained.checksum);
  json["validation"] = nullptr;
  if (const auto& point = run.trained.figures)
    json[train::FiguresName(run.trained.config)] = {
        {"step", point->step}, {"accuracy", point->accuracy}, {"loss", point->loss}};
  return json;
}

using NamedSubjects = std::vector<std::pair<const char*, std::unique_ptr<Subject>>>;

// The error terms also need training sequences, which they see first.
std::unique_ptr<Subject> MakeApproximation(const AnalysisRun& run, const std::vector<Layer>& layers,
                                           const AnalyzeRequest& request,
                                           const AnalyzeProgress& progress) {
  const std::vector<int64_t> indices = ChooseExamples(run.train, kSequences);
  const auto all = static_cast<int64_t>(indices.size());
  auto subject = MakeApproximationSubject(
      layers,
      {.pairs = request.pairs,
       .weights = request.attention_weights ? PairWeights::kAttention : PairWeights::kUniform,
       .training_sequences = all});
  int64_t done = 0;
  VisitSequences(run.trained.model, run.train, indices, [&](const SequenceCapture& sequence) {
    std::vector<SequenceLevels> levels;
    for (size_t i = 0; i < layers.size(); ++i)
      levels.push_back(Pyramid(layers[i], sequence.inputs[i]));
    subject->VisitTraining(sequence, levels);
    progress("training sequences", ++done, all);
  });
  return subject;
}

// The subjects that watch sequences go by. Those that need a matrix M pass over rotary models.
NamedSubjects MakeSubjects(const AnalysisRun& run, const std::vector<Layer>& layers,
                           const LevelMoments& moments, const AnalyzeRequest& request,
                           const AnalyzeProgress& progress, Json& skipped) {
  NamedSubjects subjects;
  const auto needs_form = [&](const char* name, auto make) {
    if (layers.front().rotary) {
      skipped.push_back({{"subject", name},
                         {"reason",
                          "rotary scores depend on the distance of two tokens: no matrix M of a "
                          "level exists"}});
    } else {
      subjects.emplace_back(name, make(layers, moments));
    }
  };
  needs_form("kernel", MakeKernelSubject);
  needs_form("direction", MakeDirectionSubject);
  if (layers.front().L > 1) {
    needs_form("approximation", [&](const auto&, const auto&) {
      return MakeApproximation(run, layers, request, progress);
    });
  } else {
    skipped.push_back({{"subject", "approximation"},
                       {"reason", "the model has one level: its scores are their own target"}});
  }
  needs_form("kurtosis",
             [&](const auto&, const auto&) { return MakeKurtosisSubject(layers, request.pairs); });
  subjects.emplace_back("mixture", MakeMixtureSubject(layers));
  return subjects;
}

// All that looks at sequences, in one pass.
void WatchSequences(const AnalysisRun& run, const std::vector<Layer>& layers,
                    const AnalyzeRequest& request, const AnalyzeProgress& progress, Json& json) {
  const std::vector<int64_t> indices = ChooseExamples(run.validation, kSequences);
  LevelMoments moments(layers.size());
  for (size_t i = 0; i < layers.size(); ++i) moments[i].resize(layers[i].levels.size());
  const NamedSubjects subjects =
      MakeSubjects(run, layers, moments, request, progress, json["skipped"]);
  const auto all = static_cast<int64_t>(indices.size());
  int64_t done = 0;
  VisitSequences(run.trained.model, run.validation, indices, [&](const SequenceCapture& sequence) {
    std::vector<SequenceLevels> levels;
    for (size_t i = 0; i < layers.size(); ++i) {
      levels.push_back(Pyramid(layers[i], sequence.inputs[i]));
      for (size_t l = 0; l < levels[i].x.size(); ++l) moments[i][l].Add(levels[i].x[l]);
    }
    for (const auto& [name, subject] : subjects) subject->Visit(sequence, levels);
    progress("validation sequences", ++done, all);
  });
  json["sequences"] = done;
  for (const auto& [name, subject] : subjects) json[name] = subject->Finish();
}

Json AnalyzeOne(const AnalysisRun& run, const std::string& folder, const AnalyzeRequest& request,
                const AnalyzeProgress& progress) {
  Json json;
  json["run"] = folder;
  json["model"] = run.trained.config.model.model;
  json["task"] = run.trained.task.name;
  json["split"] = "validation";
  json["weights"] = WeightsToJson(run);
  json["shape"] = ShapeToJson(run);
  json["skipped"] = Json::array();
  json["cost"] = CostToJson(run.trained.config.model, run.trained.task.seq_len);
  const std::vector<Layer> layers = ReadLayers(run);
  WatchSequences(run, layers, request, progress, json);
  const auto skip = [&](const char* reason) {
    json["skipped"].push_back({{"subject", "levels_removed"}, {"reason", reason}});
  };
  const ModelConfig& model = run.trained.config.model;
  if (*model.levels == 1) {
    skip("the model has one level");
  } else if (model.fusion == "uniform") {
    skip("fusion uniform has no level logits by which a level could be taken out");
  } else if (run.initial) {
    skip("an untrained model has no accuracy to lose");
  } else {
    json["levels_removed"] = LevelsRemoved(run, request.examples, [&](int64_t done, int64_t all) {
      progress("levels removed", done, all);
    });
  }
  return json;
}

}  // namespace

Json Analyze(const AnalyzeRequest& request, const AnalyzeProgress& progress) {
  CheckUsage(request.examples >= 1, "--examples is ", request.examples, ", must be at least 1");
  CheckUsage(request.pairs >= 64 && request.pairs <= 1'000'000, "--pairs is ", request.pairs,
             ", must be 64 to 1000000");
  train::SetThreads(request.threads);
  // Whatever is wrong with the request is said before the long work.
  const AnalysisRun run = LoadAnalysisRun(request.run, request.data);
  std::optional<AnalysisRun> other, initial;
  if (!request.export_to.empty()) io::CreateFolders(request.export_to);
  // --data is for RUN; the other may be of another task.
  if (!request.compare.empty()) other = LoadAnalysisRun(request.compare);
  if (request.initial) {
    initial = run;
    MakeInitial(*initial);
  }
  const Example example =
      request.text ? ExampleOfText(run, *request.text)
                   : ExampleOfSplit(
                         run, request.example.value_or(ChooseExamples(run.validation, 1).front()));
  const std::vector<Layer> layers = ReadLayers(run);
  const Json shown = ExampleToJson(run, layers, example);

  std::vector<std::string> exported;
  if (!request.export_to.empty()) {
    exported = ExportExample(run, layers, example, request.export_to);
    progress("matrices of the example", 1, 1);
  }

  const auto name = [](const std::string& folder) { return io::RunFolder(folder).root().string(); };
  Json json;
  json[io::kVersionKey] = std::string(Version());
  json.update(AnalyzeOne(run, name(request.run), request, progress));
  json["published"] = PublishedFigures(json);
  const auto beside = [&](const char* key, const AnalysisRun& which, const std::string& folder) {
    json[key] = AnalyzeOne(which, name(folder), request,
                           [&](const std::string& what, int64_t done, int64_t all) {
                             progress(Concat(key, ": ", what), done, all);
                           });
  };
  if (initial) beside("initial", *initial, request.run);
  if (other) beside("compare", *other, request.compare);
  json["example"] = shown;
  if (!exported.empty())
    json["example"]["exported"] = {{"folder", request.export_to}, {"files", exported}};
  ClearNonFinite(json);
  return json;
}

void WriteAnalysis(const std::string& run, const Json& document) {
  io::WriteFileAtomically(io::RunFolder(run).analysis(), io::PrettyJson(document));
}

}  // namespace hkt::analysis
