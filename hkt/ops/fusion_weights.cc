#include "hkt/ops/fusion_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include "hkt/ops/checks.h"

namespace hkt::ops {

FusionWeights MakeFusionWeights(const at::Tensor& level_logits,
                                const std::optional<at::Tensor>& gate_logits, at::ScalarType type) {
  const at::ScalarType exact = ExactType(type);
  FusionWeights weights;
  if (!gate_logits || !gate_logits->defined()) {
    weights.levels = at::softmax(level_logits.to(exact), 1);
    return weights;
  }
  // With gates w_l = lambda_l beta_l / bbar; in logarithms it is finite for every gate logit, where
  // the quotient is 0 / 0.
  const at::Tensor log_lambda = at::log_softmax(level_logits.to(exact), 1);
  const at::Tensor log_gated = log_lambda + at::log_sigmoid(gate_logits->to(exact));
  weights.levels = at::softmax(log_gated, 1);
  weights.attention = at::logsumexp(log_gated, {1}, /*keepdim=*/true).exp();
  weights.branches = log_lambda.exp() * at::sigmoid(-gate_logits->to(exact));
  return weights;
}

}  // namespace hkt::ops
