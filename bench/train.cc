#include "bench/train.h"

#include <deque>
#include <memory>
#include <span>
#include <string>

#include "bench/profile.h"
#include "hkt/base/error.h"
#include "hkt/data/task.h"
#include "hkt/ops/path.h"
#include "hkt/train/dry_run.h"
#include "hkt/train/model.h"
#include "hkt/train/step.h"

namespace hkt::bench {
namespace {

using Json = nlohmann::ordered_json;

// One model in training, with the operators' kernels it runs on.
class Arm {
 public:
  Arm(const Config& config, const data::TaskInfo& task, std::span<const data::TensorBatch> batches,
      bool fused)
      : model_(config, task), step_(model_, config.train), batches_(batches), fused_(fused) {
    model_.SetTraining(true);
  }

  void Step() {
    const bool before = ops::FusedKernels();
    ops::SetFusedKernels(fused_);
    step_.Run(batches_, count_++ % 2);
    ops::SetFusedKernels(before);
  }

  int64_t parameters() const { return model_.parameter_count(); }

 private:
  train::Model model_;
  train::TrainStep step_;
  std::span<const data::TensorBatch> batches_;
  bool fused_;
  int64_t count_ = 0;
};

}  // namespace

Json BenchTrain(const TrainBenchOptions& options) {
  const data::TaskInfo task = data::DescribeWithClasses(options.config.data);
  const std::vector<data::TensorBatch> batches = train::RandomBatches(options.config.train, task);
  std::deque<Arm> arms;
  std::vector<Contender> contenders;
  const auto add = [&](const char* name, const char* model, bool fused) {
    Config config = options.config;
    config.model.model = model;
    config.model.hybrid.reset();
    if (config.model.model.starts_with("mha")) config.model.levels.reset();
    Resolve(config);
    Arm& arm = arms.emplace_back(config, task, batches, fused);
    contenders.push_back({name, [&arm] { arm.Step(); }});
  };
  add("hkt_fusion", "hkt-fusion", true);
  add("hkt_fusion_composite", "hkt-fusion", false);
  add("hkt", "hkt", true);
  add("hkt_composite", "hkt", false);
  add("mha", "mha", true);
  add("mha_conv", "mha-conv", true);
  add("mha_wide", "mha-wide", true);
  add("mha_torch", "mha", false);
  const std::vector<Timing> timings = RunInTurns(contenders, options.timing);

  Json report = {{"seq_len", task.seq_len}};
  const auto timing = [&](const std::string& name) -> const Timing& {
    for (const Timing& one : timings) {
      if (one.name == name) return one;
    }
    Fail("no arm '", name, "'");
  };
  for (size_t i = 0; i < timings.size(); ++i) {
    Json& arm = report["arms"][timings[i].name];
    arm = ToJson(timings[i]);
    arm["parameters"] = arms[i].parameters();
    const int64_t bytes = MemoryGrowth(contenders[i].call);
    arm["memory_bytes"] = bytes < 0 ? Json() : Json(bytes);
    if (options.profile_steps > 0)
      arm["profile"] = ToJson(ProfileCalls(contenders[i].call, options.profile_steps));
  }
  for (const auto& [a, b] : {std::pair{"hkt_fusion_composite", "hkt_fusion"},
                             {"hkt_fusion", "mha_torch"},
                             {"hkt_composite", "hkt"},
                             {"hkt", "mha_torch"},
                             {"hkt_fusion", "mha"},
                             {"hkt", "mha"},
                             {"mha_conv", "mha"},
                             {"mha_wide", "mha"},
                             {"mha", "mha_torch"}}) {
    report["ratios"][Concat(a, "/", b)] = Ratio(timing(a), timing(b));
  }
  return report;
}

}  // namespace hkt::bench
