#include "hkt/train/model.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "hkt/base/error.h"
#include "hkt/nn/classifier.h"
#include "hkt/nn/cost.h"
#include "hkt/train/system.h"

namespace hkt::train {

struct Model::Impl {
  nn::Classifier module;
};

namespace {

nn::ClassifierOptions CheckedOptions(const Config& config, const data::TaskInfo& task) {
  const nn::ClassifierOptions options =
      nn::MakeClassifierOptions(config.model, task.vocabulary, task.seq_len,
                                static_cast<int64_t>(task.classes.size()), task.channels > 1);
  // Weights, gradients and two moments in fp32; what the activations need comes on top.
  constexpr double kGiB = 1 << 30;
  const double needed = 16.0 * static_cast<double>(nn::ParameterCount(options)),
               there = PhysicalMemory();
  Check(there == 0 || needed < there, "a model of ", nn::ParameterCount(options),
        " parameters needs ", needed / kGiB, " GiB to train, and this machine has ", there / kGiB,
        "; lower --d-model, --layers, --d-ff or --seq-len");
  return options;
}

}  // namespace

void CheckModel(const Config& config, const data::TaskInfo& task) { CheckedOptions(config, task); }

Model::Model(const Config& config, const data::TaskInfo& task) {
  const nn::ClassifierOptions options = CheckedOptions(config, task);
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard lock(generator.mutex());
    generator.set_current_seed(static_cast<uint64_t>(config.train.seed));
  }
  impl_ = std::make_shared<Impl>(Impl{nn::Classifier(options)});
  for (const auto& item : impl_->module->named_parameters())
    parameters_.emplace_back(item.key(), item.value());
}

at::Tensor Model::Forward(const at::Tensor& ids, const std::optional<at::Tensor>& lengths,
                          std::vector<at::Tensor>* attention_inputs) const {
  return impl_->module->forward(ids, lengths, attention_inputs);
}

double Model::ForwardMultiplyAdds(int64_t length) const {
  return nn::ForwardMultiplyAdds(impl_->module->options(), length);
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, parameter] : parameters_) count += parameter.numel();
  return count;
}

void Model::SetTraining(bool training) { impl_->module->train(training); }
bool Model::is_training() const { return impl_->module->is_training(); }

}  // namespace hkt::train
