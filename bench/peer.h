#pragma once

#include <memory>
#include <string>

namespace hkt::bench {

// Another library's kernels as a contender: one head, causal, stride 2, float32, contiguous rows,
// L = 1 or 3, D = 32, 64 or 128, lambda an argument. Two functions with C linkage:
struct Peer {
  using Forward = void (*)(int L, int D, const float* const* queries, const float* const* keys,
                           const float* value, const float* lambda, float scale, int T, float* out,
                           float* lse);
  using Backward = void (*)(int L, int D, const float* const* queries, const float* const* keys,
                            const float* value, const float* lambda, float scale, int T,
                            const float* out, const float* lse, const float* d_out,
                            float* const* d_queries, float* const* d_keys, float* d_value);
  Forward forward;    // hkt_fwd
  Backward backward;  // hkt_bwd
};

// Throws hkt::UsageError that names the file when it cannot be loaded or lacks a function.
Peer LoadPeer(const std::string& file);

}  // namespace hkt::bench
