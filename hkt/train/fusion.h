#pragma once

#include <nlohmann/json.hpp>

#include "hkt/io/safetensors.h"
#include "hkt/train/model.h"

namespace hkt::train {

// What the level and gate logits of a model say, in plain numbers over its heads:
//   lambda: [{mean: [a level], min: [a level], max: [a level]}, … a layer]   where L > 1
//   gate:   the same of beta                                                  where it has gates
// Other parameters are passed over; an object without keys for plain attention.
nlohmann::ordered_json DescribeFusion(const NamedTensors& parameters);

// The level and gate logits of a file of weights (float32, others are left out).
NamedTensors FusionLogits(const io::SafetensorsFile& file);

}  // namespace hkt::train
