#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hkt/base/config.h"
#include "hkt/data/dataset.h"
#include "hkt/io/run_folder.h"

namespace hkt::train {

struct TrainedModel;

// One sequence to classify.
struct Sample {
  std::vector<uint16_t> tokens;  // as in a Dataset; empty: nothing to classify, a blank line
  bool truncated = false;        // it was longer than the model's longest sequence
};

// Where samples come from, one after the other. The one seam between a task's input and
// prediction: lines of a text (hkt/train/text_lines.h), or a Dataset.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // False at the end. Throws Error that names the place of what cannot be read.
  virtual bool Next(Sample* sample) = 0;
  // Whether Next() would answer at once. What has been read is classified and handed on before
  // anybody waits for more.
  virtual bool Ready() { return true; }
};

// All of a data set of which nothing was cut, its labels left aside.
class DatasetSource : public SampleSource {
 public:
  explicit DatasetSource(data::Dataset dataset) : dataset_(std::move(dataset)) {}
  bool Next(Sample* sample) override;

 private:
  data::Dataset dataset_;
  int64_t next_ = 0;
};

struct Prediction {
  int64_t number = 0;  // of the sample, from 1 on
  bool blank = false;  // there was nothing to classify; the rest is empty
  int64_t label = 0;
  std::string name;
  double probability = 0;             // of that label
  std::vector<double> probabilities;  // of every class
  bool truncated = false;
};

struct PredictOptions {
  int64_t batch = 32;
  // Samples that are read before any is classified: sorted by length, batches of them waste little
  // on padding. Bounds the memory, whatever the length of the input.
  int64_t window = 2048;
};

// The best weights of a run, ready to classify. No torch in this header.
class Predictor {
 public:
  // Throws Error where the run has no weights or they are damaged.
  explicit Predictor(const io::RunFolder& folder);
  ~Predictor();

  const Config& config() const;  // of the run
  const std::vector<std::string>& classes() const;

  // Classifies all samples of a source. `write` gets the predictions of a window, in the source's
  // order. An Error of the source comes after the predictions of all samples before it were handed
  // on.
  void Predict(SampleSource& source, const PredictOptions& options,
               const std::function<void(const std::vector<Prediction>&)>& write) const;

 private:
  std::unique_ptr<const TrainedModel> trained_;
};

}  // namespace hkt::train
