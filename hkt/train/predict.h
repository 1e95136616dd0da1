#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hkt/io/run_folder.h"

namespace hkt::train {

struct Prediction {
  int64_t label = 0;
  std::string name;
  double probability = 0;             // of that label
  std::vector<double> probabilities;  // of every class
  bool truncated = false;             // the text was longer than the model's longest sequence
};

struct Predictions {
  std::vector<std::string> classes;
  std::vector<Prediction> texts;  // one a text, in order
};

// By the best weights of a run. Throws Error, naming the number of the text from 1 on, where one
// cannot be encoded or is empty.
Predictions Predict(const io::RunFolder& folder, const std::vector<std::string>& texts);

// The lines of a text, without their line ends (LF or CR LF).
std::vector<std::string> SplitLines(const std::string& text);

}  // namespace hkt::train
