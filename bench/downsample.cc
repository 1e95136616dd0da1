#include "bench/downsample.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/addcmul.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "bench/peak.h"
#include "hkt/base/dims.h"
#include "hkt/ops/ops.h"

namespace hkt::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Operands {
  int64_t stride;
  // x, then the six weights in the operator's order.
  std::vector<at::Tensor> all;
  at::Tensor d_out;
};

Operands MakeOperands(const DownsampleBenchOptions& options, int64_t T, int64_t d) {
  at::manual_seed(1);
  const auto draw = [](at::IntArrayRef sizes, double size) {
    return (at::randn(sizes) * size).requires_grad_();
  };
  const double root = 1 / std::sqrt(static_cast<double>(d));
  return {options.stride,
          {draw({options.batch, T, d}, 1), draw({d, 1, options.kernel_size}, 0.5), draw({d}, 0.1),
           draw({d, d}, root), draw({d}, 0.1), at::ones({d}).requires_grad_(), draw({d}, 0.1)},
          at::randn({options.batch, CeilDiv(T, options.stride), d})};
}

at::Tensor Ours(const Operands& o) {
  const auto& t = o.all;
  return ops::downsample(t[0], t[1], t[2], t[3], t[4], t[5], t[6], o.stride);
}

at::Tensor Torch(const Operands& o) {
  const auto& t = o.all;
  const int64_t k = t[1].size(2), Tl = CeilDiv(t[0].size(1), o.stride);
  const at::Tensor padded = at::constant_pad_nd(t[0], {0, 0, k - 1, 0});
  at::Tensor y = t[2];
  for (int64_t a = 0; a < k; ++a) {
    const at::Tensor tap = padded.slice(1, a, a + (Tl - 1) * o.stride + 1, o.stride);
    y = at::addcmul(y, tap, t[1].select(2, a).squeeze(1));
  }
  y = at::linear(y, t[3], t[4]);
  return at::gelu(at::layer_norm(y, {t[0].size(2)}, t[5], t[6]));
}

}  // namespace

Json BenchDownsample(const DownsampleBenchOptions& options,
                     const std::function<void(const Json&)>& progress) {
  const ThreadsGuard guard;
  const std::vector<int64_t> threads = ThreadCounts(options.threads);
  Json report = {{"cells", Json::array()}};
  for (const int64_t d : options.widths) {
    for (const int64_t T : options.seq_lens) {
      const Operands o = MakeOperands(options, T, d);
      const double rows = static_cast<double>(options.batch * CeilDiv(T, options.stride));
      const double flops =
          2 * rows * static_cast<double>(d) * static_cast<double>(d + options.kernel_size);
      for (const int64_t count : threads) {
        at::set_num_threads(static_cast<int>(count));
        for (const bool backward : {false, true}) {
          const auto call = [&o, backward](at::Tensor (*output)(const Operands&)) {
            return [&o, backward, output] {
              if (backward) {
                torch::autograd::grad({output(o)}, o.all, {o.d_out});
              } else {
                at::NoGradGuard no_grad;
                output(o);
              }
            };
          };
          const int pool = static_cast<int>(count);
          const std::vector<Timing> timings =
              RunInTurns({{"hkt", call(Ours), flops * (backward ? 4 : 1)},
                          {"torch", call(Torch), flops * (backward ? 4 : 1)},
                          {"fma_peak", [pool] { FmaChains(pool); }, FmaChainFlops(pool)}},
                         options.timing);
          Json cell = {{"B", options.batch},
                       {"T", T},
                       {"d", d},
                       {"kernel_size", options.kernel_size},
                       {"stride", options.stride},
                       {"threads", count},
                       {"pass", backward ? "forward_backward" : "forward"}};
          for (const Timing& timing : timings) cell["timings"][timing.name] = ToJson(timing);
          cell["ratios"]["hkt/torch"] = Ratio(timings[0], timings[1]);
          report["cells"].push_back(cell);
          progress(cell);
        }
      }
    }
  }
  return report;
}

}  // namespace hkt::bench
