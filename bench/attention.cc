#include "bench/attention.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/triu.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/peak.h"
#include "bench/peer.h"
#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/kernels/scratch.h"
#include "hkt/ops/ops.h"

namespace hkt::bench {
namespace {

using Json = nlohmann::ordered_json;

// One size, with the tensors of all contenders; those of L = 1 are the first level's.
struct Operands {
  int64_t H, T, D, L, stride;
  bool causal;
  std::vector<at::Tensor> queries, keys;
  at::Tensor value, d_out;

  double scale() const { return 1 / std::sqrt(static_cast<double>(D)); }
  std::vector<at::Tensor> Inputs(size_t levels) const {
    std::vector<at::Tensor> all(queries.begin(), queries.begin() + levels);
    all.insert(all.end(), keys.begin(), keys.begin() + levels);
    all.push_back(value);
    return all;
  }
  int64_t Bytes(size_t levels) const {
    int64_t bytes = 0;
    for (const at::Tensor& tensor : Inputs(levels)) bytes += tensor.nbytes();
    return bytes;
  }
};

Operands MakeOperands(const AttentionBenchOptions& options, int64_t T, int64_t D) {
  Operands o{
      options.batch_heads, T, D, options.levels, options.stride, options.causal, {}, {}, {}, {}};
  at::manual_seed(1);
  for (int64_t l = 0; l < o.L; ++l) {
    const int64_t Tl = LevelLength(T, o.stride, l);
    // The weights of a fresh model are folded in: 1 / L each.
    o.queries.push_back((at::randn({1, o.H, Tl, D}) / static_cast<double>(o.L)).requires_grad_());
    o.keys.push_back(at::randn({1, o.H, Tl, D}).requires_grad_());
  }
  o.value = at::randn({1, o.H, T, D}).requires_grad_();
  o.d_out = at::randn({1, o.H, T, D});
  return o;
}

at::Tensor Repeat(const at::Tensor& x, int64_t step, int64_t T) {
  return step == 1 ? x : x.repeat_interleave(step, 2).slice(2, 0, T);
}

// What a user of stock PyTorch writes: one inner product of width L D. Only one who knows the trick
// pads the values to that width; without it the flash kernel refuses, and PyTorch's T x T form does
// the work.
at::Tensor TorchConcatenated(const Operands& o, bool pad) {
  std::vector<at::Tensor> queries, keys;
  int64_t step = 1;
  for (int64_t l = 0; l < o.L; ++l, step *= o.stride) {
    queries.push_back(Repeat(o.queries[l], step, o.T));
    keys.push_back(Repeat(o.keys[l], step, o.T));
  }
  const at::Tensor value = pad ? at::constant_pad_nd(o.value, {0, (o.L - 1) * o.D}) : o.value;
  return at::scaled_dot_product_attention(at::cat(queries, 3), at::cat(keys, 3), value, {}, 0.0,
                                          o.causal, o.scale())
      .slice(3, 0, o.D);
}

// The equations as they stand.
at::Tensor TorchEager(const Operands& o) {
  at::Tensor scores;
  int64_t step = 1;
  for (int64_t l = 0; l < o.L; ++l, step *= o.stride) {
    at::Tensor level = at::matmul(o.queries[l], o.keys[l].transpose(2, 3));
    if (step > 1) level = Repeat(level, step, o.T).repeat_interleave(step, 3).slice(3, 0, o.T);
    scores = l == 0 ? level : scores + level;
  }
  scores = scores * o.scale();
  if (o.causal) scores = scores + at::full({o.T, o.T}, -INFINITY).triu(1);
  return at::matmul(at::softmax(scores, 3), o.value);
}

at::Tensor TorchMha(const Operands& o) {
  return at::scaled_dot_product_attention(o.queries[0], o.keys[0], o.value, {}, 0.0, o.causal,
                                          o.scale());
}

at::Tensor Ours(const Operands& o, size_t levels) {
  return ops::attention({o.queries.data(), levels}, {o.keys.data(), levels}, o.value, o.stride,
                        o.scale(), o.causal);
}

// The peer's kernels, head by head, with memory of their own.
struct PeerCall {
  const Operands& o;
  Peer peer;
  int L;
  std::vector<at::Tensor> d_queries, d_keys;
  at::Tensor out, lse, d_value;

  PeerCall(const Operands& operands, const Peer& functions, int levels)
      : o(operands), peer(functions), L(levels) {
    for (int l = 0; l < L; ++l) {
      d_queries.push_back(at::empty_like(o.queries[l]));
      d_keys.push_back(at::empty_like(o.keys[l]));
    }
    out = at::empty_like(o.value);
    d_value = at::empty_like(o.value);
    lse = at::empty({o.H, o.T});
  }
  void Run(bool forward, bool backward) const {
    static constexpr float kLambda[3] = {1, 1, 1};
    for (int64_t h = 0; h < o.H; ++h) {
      const auto head = [h](const at::Tensor& tensor) {
        return static_cast<float*>(tensor.mutable_data_ptr()) + h * tensor.stride(1);
      };
      const float *q[3], *k[3];
      float *d_q[3], *d_k[3];
      for (int l = 0; l < L; ++l) {
        q[l] = head(o.queries[l]);
        k[l] = head(o.keys[l]);
        d_q[l] = head(d_queries[l]);
        d_k[l] = head(d_keys[l]);
      }
      float* row = static_cast<float*>(lse.mutable_data_ptr()) + h * o.T;
      const auto scale = static_cast<float>(o.scale());
      const int D = static_cast<int>(o.D), T = static_cast<int>(o.T);
      if (forward) peer.forward(L, D, q, k, head(o.value), kLambda, scale, T, head(out), row);
      if (backward) {
        peer.backward(L, D, q, k, head(o.value), kLambda, scale, T, head(out), row, head(o.d_out),
                      d_q, d_k, head(d_value));
      }
    }
  }
};

// Useful operations: h score products (sum of s^-2l), and P V; three and two times backward.
double Flops(const Operands& o, size_t levels, double forward, double backward) {
  double h = 0;
  for (size_t l = 0; l < levels; ++l)
    h += std::pow(static_cast<double>(o.stride), -2.0 * static_cast<double>(l));
  const auto T = static_cast<double>(o.T);
  const double pairs = static_cast<double>(o.H) * T * T * (o.causal ? 1 : 2);
  return pairs * static_cast<double>(o.D) * (forward * (h + 1) + backward * (3 * h + 2));
}

class Cell {
 public:
  Cell(const AttentionBenchOptions& options, const Operands& operands, int threads)
      : options_(options), o_(operands), threads_(threads) {}

  Json Run(const std::string& pass) {
    std::vector<Contender> contenders;
    const bool forward = pass != "backward", backward = pass != "forward";
    const auto add = [&](const std::string& name, size_t levels, std::function<void()> call) {
      contenders.push_back(
          {name, std::move(call), Flops(o_, levels, forward ? 1 : 0, backward ? 1 : 0)});
    };
    const auto add_output = [&](const std::string& name, size_t levels,
                                const std::function<at::Tensor()>& output) {
      if (!backward) {
        add(name, levels, [output] {
          at::NoGradGuard no_grad;
          output();
        });
      } else {
        add(name, levels, [this, output, levels] {
          torch::autograd::grad({output()}, o_.Inputs(levels), {o_.d_out});
        });
      }
    };
    const auto L = static_cast<size_t>(o_.L);
    if (pass == "backward") {
      for (const auto& [name, levels] : {std::pair{"hkt", L}, std::pair{"mha", size_t{1}}}) {
        const std::vector<at::Tensor> queries(o_.queries.begin(), o_.queries.begin() + levels);
        const std::vector<at::Tensor> keys(o_.keys.begin(), o_.keys.begin() + levels);
        at::NoGradGuard no_grad;
        const auto [out, lse] = ops::attention_forward(queries, keys, o_.value, o_.stride,
                                                       o_.scale(), o_.causal, std::nullopt);
        add(name, levels, [this, queries, keys, out = out, lse = lse] {
          at::NoGradGuard no_grad;
          ops::attention_backward(o_.d_out, queries, keys, o_.value, out, lse, o_.stride,
                                  o_.scale(), o_.causal, std::nullopt);
        });
      }
    } else {
      add_output("hkt", L, [this, L] { return Ours(o_, L); });
      add_output("mha", 1, [this] { return Ours(o_, 1); });
      add_output("torch_mha", 1, [this] { return TorchMha(o_); });
      add_output("torch_hkt", L, [this] { return TorchConcatenated(o_, true); });
      if (o_.H * o_.T * o_.T <= options_.matrix_most) {
        if (o_.L > 1) add_output("torch_math", L, [this] { return TorchConcatenated(o_, false); });
        add_output("torch_eager", L, [this] { return TorchEager(o_); });
      }
    }
    std::vector<PeerCall> peers;
    const bool peer_takes_it = !options_.peer.empty() && threads_ == 1 && o_.causal &&
                               o_.stride == 2 && (o_.L == 1 || o_.L == 3) &&
                               (o_.D == 32 || o_.D == 64 || o_.D == 128);
    if (peer_takes_it) {
      const Peer peer = LoadPeer(options_.peer);
      peers.emplace_back(o_, peer, static_cast<int>(o_.L));
      peers.emplace_back(o_, peer, 1);
      for (const PeerCall& call : peers) {
        call.Run(true, false);
        add(&call == &peers[0] ? "peer_hkt" : "peer_mha", static_cast<size_t>(call.L),
            [&call, forward, backward] { call.Run(forward, backward); });
      }
    }
    const Json memory = Memory(contenders);
    contenders.push_back({"fma_peak", [this] { FmaChains(threads_); }, FmaChainFlops(threads_)});
    return Report(pass, RunInTurns(contenders, options_.timing), memory);
  }

 private:
  static Json Memory(const std::vector<Contender>& contenders) {
    Json memory = Json::object();
    for (const Contender& contender : contenders) {
      kernels::ReleaseScratch();  // so that it counts
      const int64_t bytes = MemoryGrowth(contender.call);
      memory[contender.name] = bytes < 0 ? Json() : Json(bytes);
    }
    return memory;
  }

  Json Report(const std::string& pass, const std::vector<Timing>& timings,
              const Json& memory) const {
    Json cell = {{"T", o_.T},           {"D", o_.D},           {"batch_heads", o_.H},
                 {"levels", o_.L},      {"stride", o_.stride}, {"causal", o_.causal},
                 {"threads", threads_}, {"pass", pass}};
    std::map<std::string, const Timing*> by_name;
    for (const Timing& timing : timings) {
      cell["timings"][timing.name] = ToJson(timing);
      by_name[timing.name] = &timing;
    }
    for (const auto& [a, b] : {std::pair{"hkt", "mha"},
                               {"hkt", "torch_mha"},
                               {"torch_hkt", "hkt"},
                               {"torch_math", "hkt"},
                               {"torch_eager", "hkt"},
                               {"hkt", "peer_hkt"},
                               {"mha", "peer_mha"}}) {
      if (by_name.count(a) != 0 && by_name.count(b) != 0)
        cell["ratios"][Concat(a, "/", b)] = Ratio(*by_name[a], *by_name[b]);
    }
    const Timing& peak = *by_name["fma_peak"];
    for (const Timing& timing : timings) {
      if (timing.name == "fma_peak") continue;
      cell["peak_share"][timing.name] = {
          {"best", timing.flops / timing.Best() / (peak.flops / peak.Best())},
          {"median", timing.flops / timing.Median() / (peak.flops / peak.Median())}};
    }
    cell["memory_bytes"] = memory;
    // Inputs, and what a call returns: the output, or the gradients beside it.
    const auto bytes = [&](size_t levels) {
      const int64_t inputs = o_.Bytes(levels), out = o_.value.nbytes();
      return Json{{"inputs", inputs},
                  {"results", pass == "forward" ? out : inputs + (pass == "backward" ? 0 : out)}};
    };
    cell["operand_bytes"] = {{"hkt", bytes(static_cast<size_t>(o_.L))}, {"mha", bytes(1)}};
    return cell;
  }

  const AttentionBenchOptions& options_;
  const Operands& o_;
  int threads_;
};

}  // namespace

Json BenchAttention(const AttentionBenchOptions& options,
                    const std::function<void(const Json&)>& progress) {
  const ThreadsGuard guard;
  const std::vector<int64_t> threads = ThreadCounts(options.threads);
  Json report = {{"cells", Json::array()}};
  for (const int64_t D : options.head_dims) {
    for (const int64_t T : options.seq_lens) {
      const Operands operands = MakeOperands(options, T, D);
      for (const int64_t count : threads) {
        at::set_num_threads(static_cast<int>(count));
        for (const char* pass : {"forward", "backward", "forward_backward"}) {
          report["cells"].push_back(Cell(options, operands, static_cast<int>(count)).Run(pass));
          progress(report["cells"].back());
        }
      }
    }
  }
  return report;
}

}  // namespace hkt::bench
