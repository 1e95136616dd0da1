#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hkt/data/dataset.h"
#include "hkt/data/task.h"

namespace hkt::train {

// What `predicted` (class indices in the data set's order) says, as JSON:
//   samples, accuracy, standard_error, majority {class, share}
//   classes: [{name, samples, predicted, recall, precision}]; a figure of nothing is null
//   confusion: [true class][predicted class]
//   ListOps only: by_depth, by_root_operator: {key: {samples, accuracy}}
nlohmann::ordered_json ClassificationReport(const data::TaskInfo& task,
                                            const data::Dataset& dataset,
                                            const std::vector<int32_t>& predicted);

}  // namespace hkt::train
