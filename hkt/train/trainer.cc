#include "hkt/train/trainer.h"

#include <cmath>
#include <limits>
#include <utility>

#include "hkt/base/error.h"
#include "hkt/base/version.h"
#include "hkt/base/warn.h"
#include "hkt/data/cifar10.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/io/json_lines.h"
#include "hkt/io/safetensors.h"
#include "hkt/train/evaluate.h"
#include "hkt/train/fusion.h"
#include "hkt/train/system.h"
#include "hkt/train/weights.h"

namespace hkt::train {
namespace {

using Json = nlohmann::ordered_json;

// So many steps that are not finite mean that the weights, and not one batch, are at fault.
constexpr int64_t kMaxSkippedInARow = 20;
constexpr int64_t kDoubtfulWhenLeaving = 3;

// Who nobody watches still warns.
class WarningsOnly : public TrainObserver {
 public:
  void OnWarning(const std::string& message) override { WarnOnce(message); }
};

TrainObserver& Unwatched() {
  static WarningsOnly observer;
  return observer;
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool AllFinite(const Model& model) {
  for (const auto& [name, parameter] : model.parameters()) {
    // Not by the norm: its squares overflow before the numbers do.
    if (!parameter.detach().isfinite().all().item<bool>()) return false;
  }
  return true;
}

bool Better(const ValidationPoint& candidate, const std::optional<ValidationPoint>& best) {
  if (!std::isfinite(candidate.loss)) return false;
  if (!best) return true;
  return candidate.accuracy > best->accuracy ||
         (candidate.accuracy == best->accuracy && candidate.loss < best->loss);
}

Json Rate(double count, double seconds) {
  return seconds > 0 ? Json(count / seconds) : Json(nullptr);
}

// A training step costs the forward pass three times: each of its products has two in the backward
// pass.
constexpr double kPassesPerStep = 3;

}  // namespace

Trainer::Trainer(io::RunFolder folder, const Config& config, const data::TaskInfo& task,
                 const data::Dataset& train, const data::Dataset& validation,
                 TrainObserver* observer)
    : folder_(std::move(folder)),
      config_(config),
      classes_(task.classes),
      train_(train),
      validation_(validation),
      observer_(observer != nullptr ? observer : &Unwatched()),
      fingerprint_(Fingerprint(train, validation)),
      model_(Model(config, task)),
      step_(model_, config.train),
      log_(folder_),
      random_(RandomState()) {
  Check(validation_.size() > 0,
        "the validation split is empty; the best weights could not be chosen");
  if (config_.train.ema > 0) average_.emplace(model_.parameters(), config_.train.ema);
}

RunTensors Trainer::tensors() const {
  return {model_, step_.optimizer(), average_ ? &*average_ : nullptr};
}

void Trainer::GoBackTo(int64_t step) {
  const std::filesystem::path kept = folder_.state_after(step);
  const auto others = folder_.kept_states();
  if (!std::filesystem::exists(kept)) {
    const io::SafetensorsFile current(folder_.state());
    const Progress there =
        ProgressFromJson(io::ParseJson<Json>(current.Meta("progress"), folder_.state().string()),
                         folder_.state().string());
    if (there.step == step) return;
    std::string list;
    for (const int64_t other : others) list += Concat(other, ", ");
    Fail("--from-step is ", step, ", and ", folder_.root().string(),
         " has no state after that step; there are: ", list, there.step);
  }
  // What is loaded is known to be whole and to fit before it replaces anything.
  const int64_t there = LoadState(folder_, kept, tensors(), config_, fingerprint_).step;
  Check(there == step, kept.string(), " holds the state after step ", there, ", not ", step,
        ": it was copied or renamed; go back to another");
  io::WriteFileAtomically(folder_.state(), io::ReadFile(kept));
  for (const int64_t other : others) {
    if (other >= step) std::filesystem::remove(folder_.state_after(other));
  }
}

void Trainer::Resume(std::optional<int64_t> from_step) {
  if (from_step) GoBackTo(*from_step);
  if (std::filesystem::exists(folder_.state())) {
    progress_ = LoadState(folder_, folder_.state(), tensors(), config_, fingerprint_);
    random_ = RandomState();
    elapsed_before_ = progress_.elapsed_seconds;
    cpu_before_ = progress_.cpu_seconds;
    saved_step_ = progress_.step;
  } else if (const auto kept = folder_.kept_states(); !kept.empty()) {
    Fail(folder_.state().string(),
         " is not there, but older states are; continue with --from-step ", kept.back(),
         ", or begin anew with another --out");
  }
  if (progress_.best || (from_step && std::filesystem::exists(folder_.model()))) {
    try {
      const io::SafetensorsFile file(folder_.model());  // whole, by its checksum
      const auto stored = StoredFigures(file);
      if (from_step && stored && stored->step > progress_.step) {
        Warn(Concat(folder_.model().string(), " still holds the weights of step ", stored->step,
                    ", which this run goes back before, until a better evaluation replaces them"));
      }
    } catch (const Error& error) {
      Warn(Concat(error.what(), "; the best weights from here on will be kept"));
      if (progress_.best) {
        progress_.best.reset();
        progress_.evaluations_since_best = 0;
        // Where the state's step is one of evaluations, it is repeated.
        progress_.evaluated_step = -1;
      }
    }
  }
  io::DropLinesAfter(folder_.metrics(), progress_.step);
  const bool goes_on = !finished();  // where it ended early, with more patience
  // A state saved by who left inside an evaluation is one from before it: a kill after the
  // evaluation of the next session leaves that one's line, and it is about to be written again.
  const bool evaluates_again = EvaluationDue();
  io::DropLines(folder_.metrics(), [&](const Json& line) {
    if (!line.is_object()) return false;
    const Json kind = line.value("kind", Json());
    const bool end = kind == "end";
    end_written_ = end_written_ || (end && !goes_on);
    return (end && goes_on) ||
           (evaluates_again && kind == "eval" && line.value("step", Json()) == progress_.step);
  });
}

bool Trainer::PatienceUsedUp() const {
  const int64_t patience = config_.train.patience;
  return patience > 0 && progress_.evaluations_since_best >= patience;
}

bool Trainer::finished() const {
  return (progress_.step >= config_.train.steps && progress_.evaluated_step == progress_.step) ||
         PatienceUsedUp();
}

double Trainer::Elapsed() const { return elapsed_before_ + SecondsSince(start_); }
double Trainer::CpuElapsed() const { return cpu_before_ + CpuSeconds() - cpu_start_; }

TrainEnd Trainer::Run(const ShouldStop& should_stop) {
  start_ = Clock::now();
  cpu_start_ = CpuSeconds();
  model_.SetTraining(true);
  if (config_.train.tensorboard && !finished()) log_.BeginEvents(progress_.step + 1);
  const auto seed = static_cast<uint64_t>(config_.train.seed);
  data::TrainLoader::Change change;
  if (config_.train.augment) {
    change = [seed](data::Batch& batch, int64_t epoch) {
      data::cifar10::Augment(batch, seed, epoch);
    };
  }
  data::TrainLoader loader(train_, config_.train.batch, seed, progress_.position, change);
  TrainEnd end = TrainEnd::kStopped;
  const auto stop = [&] {
    if (config_.train.max_time > 0 && SecondsSince(start_) >= config_.train.max_time)
      end = TrainEnd::kTimeUp;
    return end == TrainEnd::kTimeUp || (should_stop && should_stop());
  };
  const auto leave = [&] {
    if (!Save(/*leaving=*/true)) {
      Warn(
          "the state was not saved, as the last steps left the loss or the weights not finite; "
          "resuming goes on from the save before them, if there is one");
    }
    return end;
  };
  const bool was_finished = finished();
  for (;;) {
    if (EvaluationDue() && !DoEvaluation(stop)) return leave();
    if (finished()) break;
    if (save_due_) SaveOrWarn();
    if (stop() || !DoStep(loader, stop)) return leave();
  }
  end = progress_.step < config_.train.steps ? TrainEnd::kPatience : TrainEnd::kFinished;
  // A kill between the last save and the line leaves a finished run without it.
  if (was_finished && end_written_) return end;
  Check(was_finished || Save(/*leaving=*/true, /*is_last=*/true),
        "training ended with weights that are not finite; lower --lr and train again with another "
        "--out. ",
        progress_.best ? folder_.model().string() + " has the best weights before that"
                       : "No weights were kept");
  WriteMetrics(
      {{"kind", "end"},
       {"step", progress_.step},
       {"early", end == TrainEnd::kPatience},
       {"commit", Commit()},
       {"parameters", model_.parameter_count()},
       {"train_samples", train_.size()},
       {"validation_samples", validation_.size()},
       {"samples", progress_.samples},
       {"tokens", progress_.tokens},
       {"skipped", progress_.skipped},
       {"tokens_per_second", Rate(static_cast<double>(progress_.tokens), progress_.step_seconds)},
       {"flops_per_second",
        Rate(kFlopsPerMultiplyAdd * progress_.multiply_adds, progress_.step_seconds)},
       {"peak_memory_bytes", PeakMemory()},
       {"seconds", Elapsed()},
       {"cpu_seconds", CpuElapsed()}});
  return end;
}

bool Trainer::DoStep(data::TrainLoader& loader, const ShouldStop& should_stop) {
  const auto begin = Clock::now();
  // All micro-batches first: their number of samples is the weight of each.
  std::vector<data::TensorBatch> batches;
  double multiply_adds = 0;
  for (int64_t i = 0; i < config_.train.accumulate; ++i) {
    data::Batch batch = loader.Next();
    for (const int64_t length : batch.lengths)
      multiply_adds += kPassesPerStep * model_.ForwardMultiplyAdds(length);
    batches.push_back(data::ToTensors(std::move(batch)));
  }
  StepReport report;
  report.outcome = step_.Run(batches, progress_.step, should_stop);
  const StepOutcome& outcome = report.outcome;
  if (outcome.end == StepOutcome::End::kStopped) return false;
  const bool skipped = outcome.end == StepOutcome::End::kSkipped;
  if (average_ && !skipped) average_->Update(progress_.step + 1 - progress_.skipped);

  Progress& p = progress_;
  const double seconds = SecondsSince(begin);
  ++p.step;
  p.position = loader.position();
  random_ = RandomState();
  p.samples += outcome.samples;
  p.tokens += outcome.tokens;
  p.skipped += skipped;
  p.skipped_in_a_row = skipped ? p.skipped_in_a_row + 1 : 0;
  p.step_seconds += seconds;
  p.multiply_adds += multiply_adds;
  p.window_multiply_adds += multiply_adds;
  p.window_tokens += outcome.tokens;
  p.window_seconds += seconds;
  if (!skipped) {
    p.window_loss += outcome.loss;
    ++p.window_steps;
  }
  if (config_.train.save_every > 0 && p.step % config_.train.save_every == 0) save_due_ = true;

  report.progress = &p;
  report.mean_loss = p.window_steps > 0 ? p.window_loss / static_cast<double>(p.window_steps)
                                        : std::numeric_limits<double>::quiet_NaN();
  report.tokens_per_second =
      static_cast<double>(p.window_tokens) / std::max(p.window_seconds, 1e-9);
  report.logged = config_.train.log_every > 0 &&
                  (p.step % config_.train.log_every == 0 || p.step == config_.train.steps);
  if (report.logged) LogStep(report);
  observer_->OnStep(report);
  if (p.skipped_in_a_row >= kMaxSkippedInARow) {
    Fail(kMaxSkippedInARow, " steps in a row gave a loss or gradient that is not finite (",
         p.skipped, " in all), the last one step ", p.step,
         "; lower --lr or set --clip and start anew. What was saved in ", folder_.root().string(),
         " before is untouched");
  }
  return true;
}

void Trainer::LogStep(const StepReport& report) {
  Progress& p = progress_;
  Json line = {
      {"kind", "train"},
      {"step", p.step},
      {"epoch", p.position.epoch},
      {"loss", report.mean_loss},
      {"lr", report.outcome.rate},
      {"gradient_norm", report.outcome.gradient_norm},
      {"skipped", p.skipped},
      {"samples", p.samples},
      {"tokens", p.tokens},
      {"tokens_per_second", report.tokens_per_second},
      {"flops_per_second", Rate(kFlopsPerMultiplyAdd * p.window_multiply_adds, p.window_seconds)},
      {"peak_memory_bytes", PeakMemory()},
      {"seconds", Elapsed()}};
  line.update(DescribeFusion(model_.parameters()));
  WriteMetrics(line);
  p.window_loss = p.window_seconds = p.window_multiply_adds = 0;
  p.window_steps = p.window_tokens = 0;
}

bool Trainer::EvaluationDue() const {
  const TrainConfig& t = config_.train;
  const bool due =
      progress_.step >= t.steps || (t.eval_every > 0 && progress_.step % t.eval_every == 0);
  return due && progress_.evaluated_step != progress_.step;
}

bool Trainer::DoEvaluation(const ShouldStop& should_stop) {
  const auto begin = Clock::now();
  try {
    // The averaged weights are those that are kept, so they are those that are evaluated.
    std::optional<WeightAverage::InPlace> averaged;
    if (average_) averaged.emplace(*average_);
    const auto evaluation = Evaluate(model_, validation_, config_.train.batch, should_stop);
    if (!evaluation) return false;
    Evaluated({progress_.step, evaluation->accuracy, evaluation->loss}, SecondsSince(begin));
  } catch (...) {
    // (The weights themselves are back.) The steps are good even where their evaluation failed; it
    // is repeated when the run goes on.
    try {
      Save(/*leaving=*/true);
    } catch (const Error& error) {
      Warn(error.what());
    }
    throw;
  }
  return true;
}

void Trainer::Evaluated(const ValidationPoint& point, double seconds) {
  EvaluationReport report{point, Better(point, progress_.best), seconds,
                          config_.train.overfit_batch};
  progress_.evaluations_since_best = report.is_best ? 0 : progress_.evaluations_since_best + 1;
  if (report.is_best) {
    try {
      SaveModel(folder_, model_, config_, point, classes_);
      progress_.best = point;  // only once it is on the disk
    } catch (const Error& error) {
      if (progress_.step >= config_.train.steps) throw;  // no later evaluation could make up for it
      report.is_best = false;
      Warn(Concat(error.what(), "; training goes on"));
    }
  }
  progress_.last = point;
  progress_.evaluated_step = point.step;
  WriteMetrics({{"kind", "eval"},
                {"step", point.step},
                {"split", config_.train.overfit_batch ? "overfit_batch" : "validation"},
                {"accuracy", point.accuracy},
                {"loss", point.loss},
                {"best", report.is_best},
                {"evaluation_seconds", seconds},
                {"seconds", Elapsed()},
                {"cpu_seconds", CpuElapsed()}});
  observer_->OnEvaluation(report);
}

bool Trainer::Save(bool leaving, bool is_last) {
  // After steps that were not finite the weights may be past saving although no bit of them shows
  // it: the last good state stays until a good step shows that they are not. But who leaves now
  // would lose good steps, and one or two bad batches say little about the weights.
  const int64_t doubtful = leaving ? kDoubtfulWhenLeaving : 1;
  if (!AllFinite(model_) || (progress_.skipped_in_a_row >= doubtful && !is_last)) return false;
  progress_.elapsed_seconds = Elapsed();
  progress_.cpu_seconds = CpuElapsed();
  KeepOldState();
  SaveState(folder_, tensors(), random_, progress_, config_, fingerprint_);
  saved_step_ = progress_.step;
  DropOldStates();
  save_due_ = false;
  observer_->OnSave(progress_);
  return true;
}

// Under a second name, so that there is a state.safetensors at every moment.
void Trainer::KeepOldState() {
  if (config_.train.keep_states <= 1 || !saved_step_ || *saved_step_ == progress_.step) return;
  try {
    io::LinkOrCopy(folder_.state(), folder_.state_after(*saved_step_));
  } catch (const Error& error) {
    Warn(Concat(error.what(), "; the state before is not kept"));
  }
}

void Trainer::DropOldStates() const {
  const auto steps = folder_.kept_states();
  const auto most = static_cast<size_t>(config_.train.keep_states - 1);
  std::error_code ignored;
  for (size_t i = 0; i + most < steps.size(); ++i)
    std::filesystem::remove(folder_.state_after(steps[i]), ignored);
}

void Trainer::SaveOrWarn() {
  try {
    Save(/*leaving=*/false);
  } catch (const Error& error) {
    save_due_ = false;  // again at the next turn, not at every step
    Warn(Concat(error.what(), "; training goes on"));
  }
}

void Trainer::WriteMetrics(const Json& line) {
  try {
    log_.Write(line);
  } catch (const Error& error) {
    Warn(Concat(error.what(), "; training goes on without this line"));
  }
}

void Trainer::Warn(const std::string& message) { observer_->OnWarning(message); }

}  // namespace hkt::train
