#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <mutex>

namespace hkt::nn {

// Rotary positions: the pair (x[2i], x[2i+1]) of the position tau turns by the angle tau * step *
// base^(-2i/D), base 10000; step = s^l at level l, so that scores of every level depend on
// distances in tokens. The table of angles is kept between calls and grows; it is no parameter.
// Calls from several threads are safe.
class RotaryTable {
 public:
  explicit RotaryTable(double step) : step_(step), state_(std::make_unique<State>()) {}

  // x [B, T, H, D], contiguous, D even -> the same shape and type. Half types are turned in float.
  at::Tensor Rotate(const at::Tensor& x) const;

 private:
  struct State {
    std::mutex mutex;
    at::Tensor turns;  // complex [>= T, 1, D/2]
  };
  at::Tensor Turns(int64_t T, int64_t D, const at::TensorOptions& real) const;

  double step_;  // s^l overflows an integer for levels that no sequence reaches
  std::unique_ptr<State> state_;
};

}  // namespace hkt::nn
