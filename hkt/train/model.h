#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hkt/base/config.h"
#include "hkt/data/task.h"

namespace hkt::train {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

// Throws what Model's constructor would for a configuration that cannot be built, without building:
// UsageError for options that do not fit, Error when weights, gradients and moments need more
// memory than the machine has.
void CheckModel(const Config& config, const data::TaskInfo& task);

// The classifier (hkt/nn/classifier.h) as training sees it: a function with parameters. The headers
// of torch::nn cost every file that includes them half a minute of compiling, so only model.cc
// does. Copies share one module.
class Model {
 public:
  // Seeds PyTorch's CPU generator with the configuration's seed and draws the weights. `config` is
  // resolved.
  Model(const Config& config, const data::TaskInfo& task);

  // ids [B, T] int64, lengths int64 [B] or none -> logits [B, classes]
  // attention_inputs, when not null, gets what the attention of each block reads, [B, T, d].
  at::Tensor Forward(const at::Tensor& ids, const std::optional<at::Tensor>& lengths,
                     std::vector<at::Tensor>* attention_inputs = nullptr) const;

  // Useful multiply-adds of a forward pass over one sequence of so many valid tokens
  // (hkt/nn/cost.h).
  double ForwardMultiplyAdds(int64_t length) const;

  // In the module's order; the tensors are the module's own.
  const NamedTensors& parameters() const { return parameters_; }
  int64_t parameter_count() const;

  // In training mode dropout acts.
  void SetTraining(bool training);
  bool is_training() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
  NamedTensors parameters_;
};

}  // namespace hkt::train
