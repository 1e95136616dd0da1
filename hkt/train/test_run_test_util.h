#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hkt/io/json.h"
#include "hkt/io/json_lines.h"
#include "hkt/io/safetensors.h"
#include "hkt/train/tiny_test_util.h"
#include "hkt/train/trainer.h"

namespace hkt::train {

// Everything that a run tells, and where a test may put a spanner into the works.
struct Recorder : TrainObserver {
  void OnStep(const StepReport& report) override {
    steps[report.progress->step] = report.outcome;
    if (after_step) after_step(report.progress->step);
  }
  void OnEvaluation(const EvaluationReport& report) override { evaluations.push_back(report); }
  void OnSave(const Progress& progress) override { saves.push_back(progress.step); }
  void OnWarning(const std::string& message) override { warnings.push_back(message); }

  std::map<int64_t, StepOutcome> steps;
  std::vector<EvaluationReport> evaluations;
  std::vector<int64_t> saves;
  std::vector<std::string> warnings;
  std::function<void(int64_t step)> after_step;
};

// One run folder and as many sessions in it as a test likes.
struct TestRun {
  explicit TestRun(Config c = TinyConfig()) : config(c), task(data::Describe(c.data)) {}

  std::unique_ptr<Trainer> Open(bool resume = false,
                                std::optional<int64_t> from_step = std::nullopt) {
    auto trainer = std::make_unique<Trainer>(folder, config, task, train, validation, &recorder);
    if (resume) trainer->Resume(from_step);
    return trainer;
  }

  // Trains and leaves after that step, as a stop does.
  void RunUntil(Trainer& trainer, int64_t step) {
    EXPECT_EQ(trainer.Run([&] { return trainer.progress().step == step; }), TrainEnd::kStopped);
  }

  // The figures that must be the same bit by bit however often the run was stopped; wall times are
  // left out.
  std::string Metrics() const {
    std::string text;
    for (auto line : io::ReadJsonLines(folder.metrics())) {
      for (const char* key : {"seconds", "cpu_seconds", "tokens_per_second", "flops_per_second",
                              "peak_memory_bytes", "evaluation_seconds"})
        line.erase(key);
      text += io::CompactJson(line) + "\n";
    }
    return text;
  }

  TemporaryFolder temporary;
  io::RunFolder folder{temporary.path()};
  Config config;
  data::TaskInfo task;
  data::Dataset train = TinyData(50, 1);  // 13 batches an epoch, the last one of 2
  data::Dataset validation = TinyData(10, 2);
  Recorder recorder;
};

// Weights, moments, generator: every byte of every tensor.
inline void ExpectSameTensors(const std::filesystem::path& a, const std::filesystem::path& b) {
  const io::SafetensorsFile first(a), second(b);
  ASSERT_EQ(first.tensors().size(), second.tensors().size());
  for (const auto& [name, tensor] : first.tensors()) {
    const auto& other = second.at(name);
    EXPECT_TRUE(
        std::equal(tensor.data.begin(), tensor.data.end(), other.data.begin(), other.data.end()))
        << name;
  }
}

inline void ExpectSameRun(const TestRun& straight, const TestRun& stopped) {
  ExpectSameTensors(straight.folder.state(), stopped.folder.state());
  ExpectSameTensors(straight.folder.model(), stopped.folder.model());
  EXPECT_EQ(straight.Metrics(), stopped.Metrics());
  ASSERT_EQ(straight.recorder.steps.size(), stopped.recorder.steps.size());
  for (const auto& [step, outcome] : straight.recorder.steps) {
    const StepOutcome& other = stopped.recorder.steps.at(step);
    EXPECT_EQ(outcome.loss, other.loss) << step;
    EXPECT_EQ(outcome.rate, other.rate) << step;
    EXPECT_EQ(outcome.gradient_norm, other.gradient_norm) << step;
  }
}

}  // namespace hkt::train
