#pragma once

#include <optional>
#include <string>

#include "hkt/io/run_folder.h"
#include "hkt/report/experiment.h"

// From a run folder to the small JSON that is committed (docs/experiments.md lists its keys).

namespace hkt::report {

// What a run folder shows while its run goes on, from metrics.jsonl.
struct RunProgress {
  int64_t step = 0;
  double seconds = 0;              // of training, all sessions
  std::optional<double> accuracy;  // of the last evaluation
  bool finished = false;           // all steps done, evaluated and saved
};

RunProgress ReadProgress(const io::RunFolder& folder);

// eval.json is there, of the test split, and of the weights that are in the folder now.
bool IsEvaluated(const io::RunFolder& folder);
// analysis.json is there, of these weights and with the model before training beside it.
bool IsAnalyzed(const io::RunFolder& folder);
// hkt analyze has something to say about the hierarchy of this model: it has several levels, made
// by strided convolutions.
bool WantsAnalysis(const Config& config);

// The result of a finished, evaluated and (where wanted) analysed run. `processor` is the machine's
// name. Throws Error, naming the file, where one is missing or is not what it should be.
Json Collect(const ExperimentRun& run, const io::RunFolder& folder, const std::string& processor);

}  // namespace hkt::report
