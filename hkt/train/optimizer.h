#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hkt/base/config.h"
#include "hkt/train/model.h"

namespace hkt::train {

// How a parameter is treated, by its name (the names are those of the design, fixed in files too):
//   kFusion  level_logits, gate_logits: no decay, rate times fusion_lr_scale
//   kPlain   biases and the weights of norms: no decay
//   kDecayed all else
enum class ParameterGroup { kDecayed, kPlain, kFusion };
ParameterGroup GroupOf(std::string_view name);

// AdamW (Loshchilov and Hutter 2019), betas 0.9 and 0.999, eps 1e-8, on gradients that backward()
// left in the parameters:
//   m = b1 m + (1 - b1) g      v = b2 v + (1 - b2) g^2
//   p = p (1 - rate decay) - rate m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps)
// One call of PyTorch's fused kernel a group. The moments are held by the parameter's name, ready
// for a file.
class AdamW {
 public:
  AdamW(NamedTensors parameters, const TrainConfig& config);

  // One update. A parameter without a gradient is left as it is.
  void Step(double rate);

  // L2 norm of all gradients together; not finite when one of them is not.
  double GradientNorm() const;
  void ScaleGradients(double factor);
  void ClearGradients();

  const NamedTensors& parameters() const { return parameters_; }
  // The tensors that a checkpoint saves and fills: exp_avg.<name>, exp_avg_sq.<name>, step.
  NamedTensors State() const;

 private:
  struct Group {
    double rate_scale = 1, decay = 0;
    std::vector<size_t> members;  // indices into parameters_
  };

  std::vector<at::Tensor> Gradients() const;

  NamedTensors parameters_;
  std::map<std::string, at::Tensor> exp_avg_, exp_avg_sq_;
  at::Tensor step_;  // float32 scalar, one for all: every update concerns every parameter
  std::vector<Group> groups_;
};

}  // namespace hkt::train
