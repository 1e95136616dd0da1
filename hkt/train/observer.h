#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "hkt/data/loader.h"

// What training tells those who watch it; no torch, so that they compile fast.

namespace hkt::train {

// A useful multiply-add (hkt/nn/cost.h) counts as two floating-point operations.
constexpr double kFlopsPerMultiplyAdd = 2;

// Asked between micro-batches and between steps: true asks to stop.
using ShouldStop = std::function<bool()>;

struct StepOutcome {
  enum class End {
    kUpdated,
    kSkipped,  // the loss or the gradient was not finite: nothing was updated
    kStopped,  // asked to stop inside the accumulation: nothing was updated, the step is to be
               // repeated
  };
  End end = End::kStopped;
  double loss = 0;           // mean over the samples of all micro-batches
  double gradient_norm = 0;  // before clipping
  double rate = 0;
  int64_t samples = 0, tokens = 0;  // valid tokens
};

// A figure on the validation split after `step` steps.
struct ValidationPoint {
  int64_t step = 0;
  double accuracy = 0, loss = 0;
};

// Where a run stands after `step` steps, beside the tensors.
struct Progress {
  int64_t step = 0;                 // steps done, skipped ones included
  data::Position position;          // of the next batch
  int64_t samples = 0, tokens = 0;  // trained on
  int64_t skipped = 0, skipped_in_a_row = 0;
  double elapsed_seconds = 0;  // in all sessions, evaluation and saving included
  double cpu_seconds = 0;      // processor time of all threads, over the same
  double step_seconds = 0;     // in training steps alone
  double multiply_adds = 0;    // useful ones of all steps, forward and backward
  int64_t evaluated_step = 0;  // the last evaluation was after so many steps; 0: none yet
  std::optional<ValidationPoint> best, last;
  int64_t evaluations_since_best = 0;
  // Sums over the steps since the last line in the metrics.
  double window_loss = 0;
  int64_t window_steps = 0, window_tokens = 0;
  double window_seconds = 0, window_multiply_adds = 0;

  bool operator==(const Progress& other) const;
};

struct StepReport {
  StepOutcome outcome;
  const Progress* progress = nullptr;  // after the step
  bool logged = false;                 // a line went into metrics.jsonl
  double mean_loss =
      0;  // over the steps since the last line, this one included; NaN when all were skipped
  double tokens_per_second = 0;  // likewise
};

struct EvaluationReport {
  ValidationPoint point;
  bool is_best = false;
  double seconds = 0;
  bool overfit_batch = false;  // not on validation, but on the one batch that is trained on
};

// What wants to know how training goes on. Called in the training thread.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void OnStep(const StepReport&) {}
  virtual void OnEvaluation(const EvaluationReport&) {}
  virtual void OnSave(const Progress&) {}
  virtual void OnWarning(const std::string&) {}
};

enum class TrainEnd {
  kFinished,  // all steps are done and evaluated
  kStopped,   // should_stop said so
  kTimeUp,    // --max-time
  kPatience,  // --patience: so many evaluations were no better
};

}  // namespace hkt::train
