#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/timing.h"

namespace hkt::bench {

struct DownsampleBenchOptions {
  std::vector<int64_t> seq_lens = {1024};
  std::vector<int64_t> widths = {64, 128, 256};  // d
  std::vector<int64_t> threads = {};             // empty: 1 and all
  int64_t batch = 32, kernel_size = 3, stride = 2;
  TimingOptions timing;
};

// hkt::downsample against the same in stock PyTorch (strided slices, linear, layer_norm, gelu), in
// turn, forward and forward_backward; cells as BenchAttention's, with names hkt, torch and
// fma_peak.
nlohmann::ordered_json BenchDownsample(
    const DownsampleBenchOptions& options,
    const std::function<void(const nlohmann::ordered_json& cell)>& progress);

}  // namespace hkt::bench
