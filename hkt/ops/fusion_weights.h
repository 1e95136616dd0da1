#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace hkt::ops {

// What level and gate logits [H, L] weigh, in fp32 (fp64 for double); differentiable.
//   lambda = softmax(level_logits), beta = sigmoid(gate_logits), bbar = sum_l lambda_l beta_l
struct FusionWeights {
  at::Tensor levels;     // [H, L], of the scores: lambda_l, with gates lambda_l beta_l / bbar
  at::Tensor attention;  // [H, 1], bbar; undefined without gates
  at::Tensor branches;   // [H, L], lambda_l (1 - beta_l); undefined without gates
};

// `type` is that of the queries.
FusionWeights MakeFusionWeights(const at::Tensor& level_logits,
                                const std::optional<at::Tensor>& gate_logits, at::ScalarType type);

}  // namespace hkt::ops
