// Multi-scale attention on raw pointers, without PyTorch: one head of two levels, forward and
// backward, on as many threads as the machine has.

#include <cmath>
#include <cstdint>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

#include "hkt/kernels/attention.h"
#include "hkt/kernels/targets.h"

namespace k = hkt::kernels;

int main() {
  constexpr int64_t T = 1000, D = 64;
  constexpr int64_t Tl[2] = {T, T / 2};  // level 1 has half the positions
  std::vector<float> queries[2], keys[2], d_queries[2], d_keys[2];
  k::Input query_rows[2], key_rows[2];
  k::Output d_query_rows[2], d_key_rows[2];
  for (int l = 0; l < 2; ++l) {
    for (int64_t i = 0; i < Tl[l] * D; ++i) {
      queries[l].push_back(std::sin(0.1F * static_cast<float>(i)) / 2);  // lambda = 1/2 folded in
      keys[l].push_back(std::cos(0.3F * static_cast<float>(i)));
    }
    d_queries[l].resize(queries[l].size());
    d_keys[l].resize(keys[l].size());
    query_rows[l] = {.data = queries[l].data(), .row = D};  // strides count elements
    key_rows[l] = {.data = keys[l].data(), .row = D};
    d_query_rows[l] = {.data = d_queries[l].data(), .row = D};
    d_key_rows[l] = {.data = d_keys[l].data(), .row = D};
  }
  std::vector<float> value(T * D, 0.5F), out(T * D), lse(T), d_out(T * D, 1), d_value(T * D);

  k::AttentionParams params = {.B = 1, .H = 1, .Hkv = 1, .T = T, .D = D, .Dv = D, .L = 2};
  params.scale = 1 / std::sqrt(static_cast<float>(D));
  params.queries = query_rows;
  params.keys = key_rows;
  params.value = {.data = value.data(), .row = D};
  const k::Parallel threads = {.workers = std::thread::hardware_concurrency(),
                               .run = [](int64_t n, const std::function<void(int64_t)>& body) {
                                 std::vector<std::jthread> pool;
                                 for (int64_t i = 0; i < n; ++i) pool.emplace_back(body, i);
                               }};
  k::AttentionForward(params, {.data = out.data(), .row = D}, lse.data(), threads);
  k::AttentionBackward(params, {.data = out.data(), .row = D}, lse.data(),
                       {.data = d_out.data(), .row = D},
                       {d_query_rows, d_key_rows, {.data = d_value.data(), .row = D}}, threads);
  std::cout << "target " << k::ChosenTarget() << "\nout " << out[0] << " … " << out[T * D - 1]
            << "\nd_value " << d_value[0] << '\n';
  return 0;
}
