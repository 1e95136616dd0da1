#include "hkt/train/step.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/io/file.h"
#include "hkt/train/optimizer.h"
#include "hkt/train/schedule.h"
#include "hkt/train/tiny_test_util.h"
#include "hkt/train/weights.h"

namespace hkt::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

std::vector<data::TensorBatch> Batches(const data::Dataset& dataset,
                                       const std::vector<std::vector<int64_t>>& plan) {
  std::vector<data::TensorBatch> batches;
  for (const auto& indices : plan)
    batches.push_back(data::ToTensors(data::Gather(dataset, indices)));
  return batches;
}

std::vector<at::Tensor> Copies(const NamedTensors& tensors) {
  std::vector<at::Tensor> copies;
  for (const auto& [name, tensor] : tensors) copies.push_back(tensor.detach().clone());
  return copies;
}

TEST(StepTest, SevenSamplesInTwoBatchesAreOneBatch) {
  Config config = TinyConfig();
  config.model.dropout = 0;
  const data::TaskInfo task = data::Describe(config.data);
  const data::Dataset dataset = TinyData(7, 1);
  // Batches of 4 and 3: weighting each by a half would be wrong.
  Model split(config, task), whole(config, task);
  TrainStep split_step(split, config.train), whole_step(whole, config.train);
  const StepOutcome a = split_step.Run(Batches(dataset, {{0, 1, 2, 3}, {4, 5, 6}}), 0);
  const StepOutcome b = whole_step.Run(Batches(dataset, {{0, 1, 2, 3, 4, 5, 6}}), 0);
  EXPECT_EQ(a.end, StepOutcome::End::kUpdated);
  EXPECT_EQ(a.samples, 7);
  EXPECT_EQ(a.tokens, static_cast<int64_t>(dataset.tokens.size()));
  EXPECT_EQ(b.tokens, a.tokens);
  // Sums of 7 losses of about 2.3 in another order: a few roundings of 2^-24 each.
  EXPECT_NEAR(a.loss, b.loss, 3 * 0x1p-22);
  EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-5 * b.gradient_norm);
  for (size_t i = 0; i < split.parameters().size(); ++i) {
    const auto& [name, parameter] = split.parameters()[i];
    const double difference =
        parameter.grad().sub(whole.parameters()[i].second.grad()).norm().item<double>();
    EXPECT_TRUE(difference <= 1e-5 * b.gradient_norm) << name << ": " << difference;
  }
}

TEST(StepTest, StopInsideAnAccumulationChangesNothing) {
  const Config config = TinyConfig();
  const data::Dataset dataset = TinyData(8, 1);
  Model model(config, data::Describe(config.data));
  const auto before = Copies(model.parameters());
  TrainStep step(model, config.train);
  int asked = 0;
  const StepOutcome outcome =
      step.Run(Batches(dataset, {{0, 1, 2, 3}, {4, 5, 6, 7}}), 0, [&] { return ++asked == 2; });
  EXPECT_EQ(outcome.end, StepOutcome::End::kStopped);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::equal(before[i], model.parameters()[i].second));
    EXPECT_FALSE(model.parameters()[i].second.grad().defined());
  }
}

TEST(StepTest, StepThatIsNotFiniteIsSkippedAndTheNextIsNot) {
  const Config config = TinyConfig();
  const data::Dataset dataset = TinyData(8, 1);
  const auto batches = Batches(dataset, {{0, 1, 2, 3}});
  Model model(config, data::Describe(config.data));
  TrainStep step(model, config.train);
  const auto before = Copies(model.parameters());
  const auto moments = Copies(step.optimizer().State());
  double factor = std::numeric_limits<double>::infinity();
  const at::Tensor hooked = model.parameters().back().second;
  hooked.register_hook([&](const at::Tensor& gradient) { return gradient.mul(factor); });
  for (double bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    factor = bad;
    const StepOutcome outcome = step.Run(batches, 0);
    EXPECT_EQ(outcome.end, StepOutcome::End::kSkipped);
    EXPECT_TRUE(std::isfinite(outcome.loss));
  }
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_TRUE(at::equal(before[i], model.parameters()[i].second));
  const auto after = Copies(step.optimizer().State());
  for (size_t i = 0; i < moments.size(); ++i) EXPECT_TRUE(at::equal(moments[i], after[i]));
  factor = 1;
  EXPECT_EQ(step.Run(batches, 0).end, StepOutcome::End::kUpdated);

  {
    const at::NoGradGuard no_grad;
    hooked.fill_(std::numeric_limits<double>::quiet_NaN());
  }
  const StepOutcome outcome = step.Run(batches, 1);
  EXPECT_EQ(outcome.end, StepOutcome::End::kSkipped);
  EXPECT_TRUE(std::isnan(outcome.loss));
}

// The gradient alone does not show every loss that is not finite: here it is softmax - 1, all zeros
// and ones.
TEST(StepTest, InfiniteLossWithFiniteGradientIsSkipped) {
  const Config config = TinyConfig();
  const data::Dataset dataset = TinyData(4, 1);
  Model model(config, data::Describe(config.data));
  {
    const at::NoGradGuard no_grad;
    for (const auto& [name, parameter] : model.parameters()) {
      if (name != "head.bias") continue;
      parameter.fill_(3e38);
      parameter[dataset.labels[0]] = -3e38;
    }
  }
  TrainStep step(model, config.train);
  const StepOutcome outcome = step.Run(Batches(dataset, {{0}}), 0);
  EXPECT_TRUE(std::isinf(outcome.loss));
  EXPECT_TRUE(std::isfinite(outcome.gradient_norm));
  EXPECT_EQ(outcome.end, StepOutcome::End::kSkipped);
}

TEST(StepTest, ClippingLimitsTheNormThatTheOptimizerSees) {
  Config config = TinyConfig();
  config.train.clip = 0.01;
  const data::Dataset dataset = TinyData(8, 1);
  Model model(config, data::Describe(config.data));
  TrainStep step(model, config.train);
  const StepOutcome outcome = step.Run(Batches(dataset, {{0, 1, 2, 3}}), 0);
  EXPECT_GT(outcome.gradient_norm, 0.01);
  EXPECT_NEAR(step.optimizer().GradientNorm(), 0.01, 1e-7);
  EXPECT_EQ(outcome.rate, LearningRate(config.train, 0));
}

TEST(OptimizerTest, GroupsByName) {
  for (const char* name :
       {"level_logits", "blocks.0.attention.level_logits", "blocks.1.attention.gate_logits"}) {
    EXPECT_EQ(GroupOf(name), ParameterGroup::kFusion) << name;
  }
  for (const char* name :
       {"final_norm.weight", "final_norm.bias", "blocks.0.attention_norm.weight",
        "blocks.0.ffn_norm.weight", "blocks.0.attention.downsample.1.norm.weight", "head.bias",
        "blocks.0.attention.conv.0.depthwise.bias", "blocks.0.attention.query.0.bias"}) {
    EXPECT_EQ(GroupOf(name), ParameterGroup::kPlain) << name;
  }
  for (const char* name :
       {"embedding.weight", "position.weight", "head.weight", "blocks.0.attention.query.0.weight",
        "blocks.0.attention.downsample.1.depthwise.weight", "blocks.0.ffn.0.weight"}) {
    EXPECT_EQ(GroupOf(name), ParameterGroup::kDecayed) << name;
  }
}

// The formula in double, one number at a time.
struct Reference {
  double value, m = 0, v = 0;
  int t = 0;
  void Step(double g, double rate, double decay) {
    ++t;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    value *= 1 - rate * decay;
    value -= rate * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
};

TEST(OptimizerTest, EqualsAPlainLoop) {
  constexpr int kSize = 19, kSteps = 30;
  TrainConfig config;
  config.weight_decay = 0.1;
  config.fusion_lr_scale = 4;
  const struct {
    const char* name;
    double scale, decay;
  } kParameters[] = {{"head.weight", 1, 0.1},
                     {"head.bias", 1, 0},
                     {"final_norm.weight", 1, 0},
                     {"level_logits", 4, 0}};
  Random random({3});
  NamedTensors parameters;
  std::vector<std::vector<Reference>> references;
  for (const auto& parameter : kParameters) {
    const at::Tensor tensor = at::empty({kSize}, at::kDouble);
    std::vector<Reference> reference;
    for (int i = 0; i < kSize; ++i) {
      reference.push_back({2 * random.Uniform() - 1});
      tensor.data_ptr<double>()[i] = reference.back().value;
    }
    parameters.emplace_back(parameter.name, tensor.set_requires_grad(true));
    references.push_back(reference);
  }
  AdamW optimizer(parameters, config);
  for (int step = 0; step < kSteps; ++step) {
    const double rate = 0.01 * (step + 1);
    double squares = 0;
    for (size_t p = 0; p < parameters.size(); ++p) {
      const at::Tensor gradient = at::empty({kSize}, at::kDouble);
      for (int i = 0; i < kSize; ++i) {
        const double g = 10 * (random.Uniform() - 0.5);
        gradient.data_ptr<double>()[i] = g;
        squares += g * g;
        references[p][static_cast<size_t>(i)].Step(g, rate * kParameters[p].scale,
                                                   kParameters[p].decay);
      }
      parameters[p].second.mutable_grad() = gradient;
    }
    EXPECT_NEAR(optimizer.GradientNorm(), std::sqrt(squares), 1e-10);
    optimizer.Step(rate);
  }
  for (size_t p = 0; p < parameters.size(); ++p) {
    for (int i = 0; i < kSize; ++i) {
      const double got = parameters[p].second.data_ptr<double>()[i];
      const double expected = references[p][static_cast<size_t>(i)].value;
      EXPECT_TRUE(std::abs(got - expected) <= 1e-12)
          << kParameters[p].name << " " << got << " " << expected;
    }
  }
}

TEST(OptimizerTest, DecayAloneMovesOnlyTheDecayed) {
  TrainConfig config;
  config.weight_decay = 0.5;
  NamedTensors parameters;
  for (const char* name :
       {"head.weight", "head.bias", "final_norm.weight", "level_logits", "gate_logits"}) {
    parameters.emplace_back(name, at::full({3}, 2.0).set_requires_grad(true));
    parameters.back().second.mutable_grad() = at::zeros({3});
  }
  AdamW(parameters, config).Step(0.1);
  EXPECT_NEAR(parameters[0].second[0].item<double>(), 2 * (1 - 0.1 * 0.5), 1e-6);
  for (size_t i = 1; i < parameters.size(); ++i) {
    EXPECT_EQ(parameters[i].second[0].item<double>(), 2.0) << parameters[i].first;
  }
}

TEST(OptimizerTest, ParameterWithoutGradientStays) {
  NamedTensors parameters = {{"head.weight", at::full({3}, 2.0).set_requires_grad(true)}};
  AdamW optimizer(parameters, TrainConfig());
  EXPECT_EQ(optimizer.GradientNorm(), 0);
  optimizer.Step(0.1);
  EXPECT_EQ(parameters[0].second[0].item<double>(), 2.0);
}

TEST(WeightsTest, RoundTripAndEveryMisfitInOneError) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "weights";
  const NamedTensors source = {{"a", at::full({2, 3}, 1.5)},
                               {"b", at::full({4}, 2.5, at::kHalf)},
                               {"c", at::full({2}, 3, at::kLong)},
                               {"t", at::full({3, 2}, 4.0).t()}};
  source[3].second[1][0] = 5;
  TensorPack pack;
  pack.Add("x.", source);
  pack.Add("y.", {{"other", at::zeros({1})}});
  io::WriteSafetensors(path, pack.views(), {});
  const io::SafetensorsFile file(path);

  const NamedTensors same = {{"a", at::zeros({2, 3})},
                             {"b", at::zeros({4})},
                             {"c", at::zeros({2}, at::kLong)},
                             {"t", at::zeros({2, 3})}};
  CopyInto(file, "x.", same);
  for (size_t i = 0; i < same.size(); ++i)
    EXPECT_TRUE(at::equal(same[i].second, source[i].second.to(same[i].second.dtype())));

  const NamedTensors wrong = {{"a", at::zeros({3, 2})},
                              {"c", at::zeros({2})},
                              {"t", at::zeros({2, 3})},
                              {"m1", at::zeros({1})},
                              {"m2", at::zeros({1})}};
  EXPECT_THAT([&] { CopyInto(file, "x.", wrong); },
              ThrowsMessage<Error>(AllOf(
                  HasSubstr(path.string()), HasSubstr("missing: m1, m2"),
                  HasSubstr("not of the model: b"), HasSubstr("a [2, 3] instead of [3, 2]"),
                  HasSubstr("c of type I64"), Not(HasSubstr("other")), Not(HasSubstr("\n")))));
  for (const auto& [name, tensor] : wrong)
    EXPECT_EQ(tensor.norm().item<double>(), 0) << name << " was touched";
}

}  // namespace
}  // namespace hkt::train
