#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hkt/report/comparisons.h"
#include "hkt/report/experiment.h"

// The parts of ReportExperiments.

namespace hkt::report {

// A row of the experiments (all its seeds) beside the results it has.
struct PlannedRow {
  const ExperimentRun* run;  // of its first seed
  Row row;
};

// Mean and deviation over seeds, and the values themselves; null for none.
nlohmann::ordered_json SummaryJson(const std::vector<double>& values);

// Rows beside a reference: by which options they differ, how much better or worse they are than it
// on the same seeds, McNemar's test. Each task, number of steps, length of sequences and preset has
// a reference of its own, the row that differs in the fewest options from the others of that kind.
nlohmann::ordered_json Ablations(const std::vector<PlannedRow>& rows);

// The trials of the recipe: validation figures, and the options that vary among the trials of one
// model, for any model of the task.
nlohmann::ordered_json Trials(const std::vector<PlannedRow>& rows);

// Over all HKT runs of the tables: the published claims about trained models beside ours.
nlohmann::ordered_json Structure(const std::vector<PlannedRow>& rows);

// experiments/results/step.json, ladder.json and floors-<task>.json; null where there is none.
nlohmann::ordered_json TrainingStep(const std::filesystem::path& path);
nlohmann::ordered_json Ladder(const std::filesystem::path& path);
nlohmann::ordered_json Floors(const std::filesystem::path& path);

}  // namespace hkt::report
