#include "hkt/train/average.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_lerp.h>

#include <algorithm>

namespace hkt::train {

WeightAverage::WeightAverage(const NamedTensors& parameters, double decay)
    : parameters_(parameters), decay_(decay) {
  for (const auto& [name, parameter] : parameters_)
    averages_.emplace_back(name, parameter.detach().clone());
}

void WeightAverage::Update(int64_t updates) {
  const at::NoGradGuard no_grad;
  const auto n = static_cast<double>(updates);
  const double decay = std::min(decay_, (1 + n) / (10 + n));
  std::vector<at::Tensor> averages, weights;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    averages.push_back(averages_[i].second);
    weights.push_back(parameters_[i].second);
  }
  at::_foreach_lerp_(averages, weights, 1 - decay);
}

WeightAverage::InPlace::InPlace(const WeightAverage& average) : average_(average) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, parameter] : average_.parameters_)
    weights_.push_back(parameter.detach().clone());
  for (size_t i = 0; i < weights_.size(); ++i)
    average_.parameters_[i].second.detach().copy_(average_.averages_[i].second);
}

WeightAverage::InPlace::~InPlace() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < weights_.size(); ++i)
    average_.parameters_[i].second.detach().copy_(weights_[i]);
}

}  // namespace hkt::train
