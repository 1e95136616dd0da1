#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/timing.h"

namespace hkt::bench {

struct AttentionBenchOptions {
  std::vector<int64_t> seq_lens = {256, 1024, 2048, 4096, 16384};
  std::vector<int64_t> head_dims = {32, 64, 128};
  std::vector<int64_t> threads = {};  // empty: 1 and all
  int64_t batch_heads = 1;            // B * H, as B = 1 and H heads
  int64_t levels = 3, stride = 2;
  bool causal = true;
  std::string peer;                        // a library, or empty
  int64_t matrix_most = int64_t{1} << 26;  // scores of the forms that store them: 256 MiB
  TimingOptions timing;
};

// One cell a (T, D, threads, pass): the contenders
//   hkt         hkt::attention, L levels
//   mha         hkt::attention, L = 1
//   torch_mha   scaled_dot_product_attention, L = 1
//   torch_hkt   stock PyTorch: repeat, concatenate, pad, scaled_dot_product_attention
//   torch_math  the same without padding the values: PyTorch's T x T form
//   torch_eager stock PyTorch: every level's T x T scores, repeated, summed, softmax, product
//   peer_hkt, peer_mha   the library `peer`: one head after the other, in one thread
//   fma_peak    multiply-adds in registers, on as many threads
// in turn in one run, for the passes forward, backward (ours and the peer's only) and
// forward_backward. `progress` is called with every finished cell. Returns
//   {"cells": [{"T", "D", "threads", "pass", "timings": {name: …}, "memory_bytes": {name: …},
//               "operand_bytes": …, "ratios": {…}, "peak_share": {name: …}}]}
nlohmann::ordered_json BenchAttention(
    const AttentionBenchOptions& options,
    const std::function<void(const nlohmann::ordered_json& cell)>& progress);

}  // namespace hkt::bench
