#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>

#include "bench/timing.h"
#include "hkt/base/config.h"

namespace hkt::bench {

struct TrainBenchOptions {
  // As given to `hkt train`, not resolved. What the arms differ in is set here: model and gates,
  // and one level for those of one level.
  Config config;
  TimingOptions timing;
  int64_t profile_steps = 0;  // of every arm, after the timing; 0: no profile
};

// Whole training steps (forward, backward, clipping, AdamW, dropout) on random batches of full
// length, the arms in turn, a step each:
//   hkt_fusion             three levels without gates, fused kernels
//   hkt_fusion_composite   the same in stock PyTorch (hkt/ops composites)
//   hkt                    with gates, fused kernels
//   hkt_composite          the same in stock PyTorch
//   mha                    one level, fused kernels
//   mha_conv               one level with gates, fused kernels
//   mha_wide               mha with a wider feed-forward, fused kernels
//   mha_torch              one level on PyTorch's flash attention, what
//   scaled_dot_product_attention calls
// Returns {"arms": {name: {timing…, "parameters", "memory_bytes" (growth of the process's memory
// during one step, after the timing; null where the system does not say), "profile" (see
// bench/profile.h)}}, "ratios": {…} of times}.
nlohmann::ordered_json BenchTrain(const TrainBenchOptions& options);

}  // namespace hkt::bench
