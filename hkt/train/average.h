#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "hkt/train/model.h"

namespace hkt::train {

// Exponential moving average of a model's weights (Polyak and Juditsky 1992). After update
// n = 1, 2, …
//   a = d_n a + (1 - d_n) w      d_n = min(decay, (1 + n) / (10 + n))
// The decay warms up because a starts at the random weights: without that these would weigh decay^n
// for as long as 1 / (1 - decay) updates.
class WeightAverage {
 public:
  WeightAverage(const NamedTensors& parameters, double decay);

  // `updates`: how many there were, the one that is added included.
  void Update(int64_t updates);

  // Under the parameters' names; what a checkpoint saves and fills.
  const NamedTensors& State() const { return averages_; }

  // While it lives the parameters hold the average, bit for bit, and afterwards what they held
  // before.
  class InPlace {
   public:
    explicit InPlace(const WeightAverage& average);
    ~InPlace();
    InPlace(const InPlace&) = delete;
    InPlace& operator=(const InPlace&) = delete;

   private:
    const WeightAverage& average_;
    std::vector<at::Tensor> weights_;
  };

 private:
  NamedTensors parameters_;  // the model's own
  NamedTensors averages_;
  double decay_;
};

}  // namespace hkt::train
