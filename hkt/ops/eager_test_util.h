#pragma once

// Attention written down as the paper has it: every level's score matrix, repeated to T x T, mixed,
// masked, softmax, times V. Nothing is shared with the operators but the definition. Call it with
// double tensors: it is what they are held to.

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "hkt/base/dims.h"
#include "hkt/testing/compare.h"
#include "hkt/testing/error_bound.h"

namespace hkt::ops {

// S [B, H, T, T], every level's scores repeated and summed.
inline at::Tensor EagerScores(const std::vector<at::Tensor>& queries,
                              const std::vector<at::Tensor>& keys, int64_t stride,
                              std::optional<double> scale = std::nullopt) {
  const int64_t H = queries[0].size(1), T = queries[0].size(2), D = queries[0].size(3);
  const int64_t groups = keys[0].size(1) == 0 ? 1 : H / keys[0].size(1);
  const at::Tensor token = at::arange(T, at::kLong);
  at::Tensor scores = at::zeros({queries[0].size(0), H, T, T}, queries[0].options());
  int64_t step = 1;
  for (size_t l = 0; l < queries.size(); ++l, step *= stride) {
    const at::Tensor cell = token.div(step, "floor");
    const at::Tensor level =
        at::matmul(queries[l], keys[l].repeat_interleave(groups, 1).transpose(2, 3));
    scores = scores + level.index_select(2, cell).index_select(3, cell);
  }
  return scores * scale.value_or(1.0 / std::sqrt(static_cast<double>(D)));
}

// Which keys a row sees, broadcasts to [B, 1, T, T].
inline at::Tensor EagerMask(int64_t T, bool causal, const std::optional<at::Tensor>& lengths) {
  at::Tensor allowed = at::ones({T, T}, at::kBool);
  if (causal) allowed = allowed.tril();
  allowed = allowed.unsqueeze(0).unsqueeze(0);
  if (!lengths) return allowed;
  const at::Tensor valid = at::arange(T, at::kLong).lt(lengths->unsqueeze(1)).unsqueeze(1);
  return allowed & valid.unsqueeze(2) & valid.unsqueeze(3);
}

inline at::Tensor EagerAttention(const std::vector<at::Tensor>& queries,
                                 const std::vector<at::Tensor>& keys, const at::Tensor& value,
                                 int64_t stride, std::optional<double> scale = std::nullopt,
                                 bool causal = true,
                                 const std::optional<at::Tensor>& lengths = std::nullopt) {
  const int64_t H = queries[0].size(1), T = queries[0].size(2);
  const at::Tensor allowed = EagerMask(T, causal, lengths);
  // Rows without a key: the scores there are replaced before the softmax, and the weights after it.
  const at::Tensor has_key = allowed.any(3, /*keepdim=*/true);
  at::Tensor weights = at::where(allowed, EagerScores(queries, keys, stride, scale), -INFINITY);
  weights = at::where(has_key, weights, 0.0).softmax(3);
  weights = at::where(allowed, weights, 0.0);
  at::Tensor v = value;
  if (lengths)
    v = at::where(at::arange(T, at::kLong).lt(lengths->unsqueeze(1)).unsqueeze(1).unsqueeze(3), v,
                  0.0);
  return at::matmul(weights, v.repeat_interleave(value.size(1) == 0 ? 1 : H / value.size(1), 1));
}

// [B, H, T]
inline at::Tensor EagerLogSumExp(const std::vector<at::Tensor>& queries,
                                 const std::vector<at::Tensor>& keys, int64_t stride, bool causal,
                                 const std::optional<at::Tensor>& lengths,
                                 std::optional<double> scale = std::nullopt) {
  const at::Tensor allowed = EagerMask(queries[0].size(2), causal, lengths);
  return at::where(allowed, EagerScores(queries, keys, stride, scale), -INFINITY).logsumexp(3);
}

// Inputs of one call, random and fixed by the seed.
struct AttentionInputs {
  std::vector<at::Tensor> queries, keys;
  at::Tensor value;

  std::vector<at::Tensor> All() const {
    std::vector<at::Tensor> all = queries;
    all.insert(all.end(), keys.begin(), keys.end());
    all.push_back(value);
    return all;
  }
  AttentionInputs To(at::ScalarType type) const {
    AttentionInputs copy;
    for (const at::Tensor& q : queries) copy.queries.push_back(q.detach().to(type));
    for (const at::Tensor& k : keys) copy.keys.push_back(k.detach().to(type));
    copy.value = value.detach().to(type);
    return copy;
  }
  AttentionInputs RequireGrad() const {
    for (const at::Tensor& tensor : All()) const_cast<at::Tensor&>(tensor).requires_grad_(true);
    return *this;
  }
};

struct AttentionShape {
  int64_t B = 1, H = 1, Hkv = 1, T = 1, D = 1, Dv = 1, L = 1, s = 2;
};

inline AttentionInputs MakeInputs(const AttentionShape& shape, uint64_t seed,
                                  at::ScalarType type = at::kDouble) {
  at::manual_seed(seed);
  AttentionInputs inputs;
  for (int64_t l = 0; l < shape.L; ++l) {
    const int64_t Tl = LevelLength(shape.T, shape.s, l);
    inputs.queries.push_back(at::randn({shape.B, shape.H, Tl, shape.D}, type));
    inputs.keys.push_back(at::randn({shape.B, shape.Hkv, Tl, shape.D}, type));
  }
  inputs.value = at::randn({shape.B, shape.Hkv, shape.T, shape.Dv}, type);
  return inputs;
}

// Arguments of one call of hkt::downsample, random and fixed by the seed.
struct Conv {
  at::Tensor x, dw, db, pw, pb, nw, nb;

  std::vector<at::Tensor> All() const { return {x, dw, db, pw, pb, nw, nb}; }
  // x in `type`, the weights in `weights`, or in `type` as well.
  Conv To(at::ScalarType type, std::optional<at::ScalarType> weights = std::nullopt) const {
    const auto cast = [&](const at::Tensor& w) {
      return w.detach().to(weights.value_or(type)).requires_grad_(true);
    };
    return {x.detach().to(type).requires_grad_(true),
            cast(dw),
            cast(db),
            cast(pw),
            cast(pb),
            cast(nw),
            cast(nb)};
  }
};

inline Conv MakeConv(int64_t B, int64_t T, int64_t d, int64_t k, uint64_t seed) {
  at::manual_seed(seed);
  const auto make = [](at::IntArrayRef sizes) {
    return at::randn(sizes, at::kDouble).requires_grad_(true);
  };
  return {make({B, T, d}), make({d, 1, k}), make({d}), make({d, d}),
          make({d}),       make({d}),       make({d})};
}

// hkt::downsample from PyTorch's convolutions and norm.
inline at::Tensor EagerDownsample(const Conv& c, int64_t stride) {
  const int64_t d = c.x.size(2), k = c.dw.size(2);
  const at::Tensor padded = at::constant_pad_nd(c.x.transpose(1, 2), {k - 1, 0});
  const at::Tensor conv = at::conv1d(padded, c.dw, c.db, stride, at::IntArrayRef{0}, 1, d);
  const at::Tensor mapped = at::conv1d(conv, c.pw.unsqueeze(2), c.pb).transpose(1, 2);
  return at::gelu(at::layer_norm(mapped, {d}, c.nw, c.nb, 1e-5));
}

inline std::vector<double> ToDoubles(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kDouble).contiguous();
  return {flat.const_data_ptr<double>(), flat.const_data_ptr<double>() + flat.numel()};
}

inline testing::Comparison Compare(const at::Tensor& got, const at::Tensor& want, double bound) {
  if (got.sizes() != want.sizes()) return {false, INFINITY, "shapes differ"};
  return testing::Compare(ToDoubles(got), ToDoubles(want), bound);
}

inline testing::Comparison CompareBits(const at::Tensor& got, const at::Tensor& want) {
  if (got.sizes() != want.sizes() || got.scalar_type() != want.scalar_type())
    return {false, INFINITY, "shapes or types differ"};
  return testing::CompareBits(ToDoubles(got), ToDoubles(want));
}

inline double Largest(const at::Tensor& tensor) {
  return tensor.numel() == 0 ? 0.0 : tensor.abs().max().item<double>();
}

inline double Largest(const std::vector<at::Tensor>& tensors) {
  double largest = 0;
  for (const at::Tensor& tensor : tensors) largest = std::max(largest, Largest(tensor));
  return largest;
}

inline testing::AttentionBound BoundOf(const AttentionShape& shape, const AttentionInputs& inputs,
                                       const at::Tensor& d_out, double unit,
                                       std::optional<double> scale = std::nullopt) {
  return {.unit = unit,
          .T = static_cast<double>(shape.T),
          .D = static_cast<double>(shape.D),
          .Dv = static_cast<double>(shape.Dv),
          .L = static_cast<double>(shape.L),
          .q_max = Largest(inputs.queries),
          .k_max = Largest(inputs.keys),
          .v_max = Largest(inputs.value),
          .d_out_max = Largest(d_out),
          .scale = scale.value_or(1.0 / std::sqrt(static_cast<double>(shape.D)))};
}

inline std::vector<at::Tensor> Grad(const at::Tensor& out, const std::vector<at::Tensor>& inputs,
                                    const at::Tensor& d_out) {
  return torch::autograd::grad({out}, inputs, {d_out});
}

inline at::Tensor Lengths(std::vector<int64_t> values) { return at::tensor(values, at::kLong); }

// Largest memory of this process so far, in bytes.
inline double PeakMemory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stod(line.substr(6)) * 1024;
  }
  return std::numeric_limits<double>::infinity();
}

// What a call that must fail says.
inline std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  }
  return "no error";
}

}  // namespace hkt::ops
