#include "hkt/train/optimizer.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <array>

namespace hkt::train {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;

}  // namespace

ParameterGroup GroupOf(std::string_view name) {
  const size_t dot = name.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? name : name.substr(dot + 1);
  const std::string_view owner =
      dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
  if (last == "level_logits" || last == "gate_logits") return ParameterGroup::kFusion;
  // attention_norm, ffn_norm, final_norm, downsample.{l}.norm
  if (last == "bias" || owner.ends_with("norm")) return ParameterGroup::kPlain;
  return ParameterGroup::kDecayed;
}

AdamW::AdamW(NamedTensors parameters, const TrainConfig& config)
    : parameters_(std::move(parameters)), step_(at::zeros({}, at::kFloat)), groups_(3) {
  groups_[static_cast<size_t>(ParameterGroup::kDecayed)].decay = config.weight_decay;
  groups_[static_cast<size_t>(ParameterGroup::kFusion)].rate_scale = config.fusion_lr_scale;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    groups_[static_cast<size_t>(GroupOf(name))].members.push_back(i);
    exp_avg_[name] = at::zeros_like(parameter.detach());
    exp_avg_sq_[name] = at::zeros_like(parameter.detach());
  }
}

void AdamW::Step(double rate) {
  const at::NoGradGuard no_grad;
  step_ += 1;
  for (const Group& group : groups_) {
    std::vector<at::Tensor> values, gradients, first, second;
    for (size_t i : group.members) {
      const auto& [name, parameter] = parameters_[i];
      if (!parameter.grad().defined()) continue;
      values.push_back(parameter);
      gradients.push_back(parameter.grad());
      first.push_back(exp_avg_.at(name));
      second.push_back(exp_avg_sq_.at(name));
    }
    if (values.empty()) continue;
    const std::vector<at::Tensor> steps(values.size(), step_);
    at::_fused_adamw_(values, gradients, first, second, {}, steps, rate * group.rate_scale, kBeta1,
                      kBeta2, group.decay, kEpsilon, /*amsgrad=*/false, /*maximize=*/false);
  }
}

std::vector<at::Tensor> AdamW::Gradients() const {
  std::vector<at::Tensor> gradients;
  gradients.reserve(parameters_.size());
  for (const auto& [name, parameter] : parameters_) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return gradients;
}

double AdamW::GradientNorm() const {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = Gradients();
  if (gradients.empty()) return 0;
  return at::linalg_vector_norm(at::stack(at::_foreach_norm(gradients, 2))).item<double>();
}

void AdamW::ScaleGradients(double factor) {
  const at::NoGradGuard no_grad;
  const std::vector<at::Tensor> gradients = Gradients();
  if (!gradients.empty()) at::_foreach_mul_(gradients, factor);
}

void AdamW::ClearGradients() {
  for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
}

NamedTensors AdamW::State() const {
  NamedTensors state;
  for (const auto& [name, tensor] : exp_avg_) state.emplace_back("exp_avg." + name, tensor);
  for (const auto& [name, tensor] : exp_avg_sq_) state.emplace_back("exp_avg_sq." + name, tensor);
  state.emplace_back("step", step_);
  return state;
}

}  // namespace hkt::train
