#include "hkt/nn/rotary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/polar.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/view_as_real.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>

namespace hkt::nn {
namespace {

constexpr double kBase = 10000;

}  // namespace

at::Tensor RotaryTable::Turns(int64_t T, int64_t D, const at::TensorOptions& real) const {
  const std::lock_guard lock(state_->mutex);
  at::Tensor& turns = state_->turns;
  const c10::ScalarType complex = c10::toComplexType(c10::typeMetaToScalarType(real.dtype()));
  if (!turns.defined() || turns.size(0) < T || turns.size(2) != D / 2 ||
      turns.scalar_type() != complex || turns.device() != real.device()) {
    // The table outlives this call: one made in inference mode could not be saved for a later
    // backward.
    const c10::InferenceMode not_inference(false);
    const c10::NoGradGuard no_grad;
    // Angles in double: in float the position 1e5 would be off by 0.4 % of a turn.
    const at::TensorOptions cpu_double = at::TensorOptions().dtype(at::kDouble);
    const at::Tensor rates =
        at::pow(kBase, at::arange(0, D, 2, cpu_double) * (-1.0 / static_cast<double>(D)));
    const at::Tensor angles = at::outer(at::arange(T, cpu_double) * step_, rates).unsqueeze(1);
    turns = at::polar(at::ones_like(angles), angles).to(real.dtype(complex));
  }
  return turns.narrow(0, 0, T);
}

at::Tensor RotaryTable::Rotate(const at::Tensor& x) const {
  const int64_t B = x.size(0), T = x.size(1), H = x.size(2), D = x.size(3);
  const at::ScalarType type = x.scalar_type();
  const bool half = type == at::kHalf || type == at::kBFloat16;
  const at::Tensor real = half ? x.to(at::kFloat) : x;
  const at::Tensor pairs = at::view_as_complex(real.view({B, T, H, D / 2, 2}));
  const at::Tensor turned =
      at::view_as_real(pairs * Turns(T, D, real.options())).view({B, T, H, D});
  return half ? turned.to(type) : turned;
}

}  // namespace hkt::nn
