#include "hkt/ops/attention_chunked.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <limits>

#include "hkt/ops/checks.h"

namespace hkt::ops {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Scores of one chunk: 2^22 of them, 16 MiB in float32, or those of one row of every head.
int64_t ChunkRows(int64_t B, int64_t H, int64_t T) {
  return std::clamp<int64_t>((int64_t{1} << 22) / std::max<int64_t>(B * H * T, 1), 1,
                             std::max<int64_t>(T, 1));
}

// The rows of a chunk side by side for the G = H / Hkv query heads of a key head: two matrix
// products a chunk, and keys are never repeated.
struct Chunks {
  const Concatenated& x;
  at::ScalarType exact = ExactType(x.q.scalar_type());
  int64_t B = x.q.size(0), H = x.q.size(1), T = x.q.size(2), Hkv = x.k.size(1);
  int64_t G = Hkv == 0 ? 1 : H / Hkv, rows = ChunkRows(B, H, T);
  at::Tensor q = Grouped(x.q), k = x.k.to(exact), v = x.v.to(exact);
  at::Tensor tokens = at::arange(T, x.q.options().dtype(at::kLong));

  // [B, H, T, W] -> [B, Hkv, G, T, W], exact.
  at::Tensor Grouped(const at::Tensor& full) const {
    return full.to(exact).reshape({B, Hkv, G, full.size(2), full.size(3)});
  }
  // Rows first … first + count of it, as [B, Hkv, G * count, W].
  at::Tensor Rows(const at::Tensor& grouped, int64_t first, int64_t count) const {
    return grouped.slice(3, first, first + count).reshape({B, Hkv, G * count, grouped.size(4)});
  }
  at::Tensor Apart(const at::Tensor& joined, int64_t count) const {
    return joined.reshape({B, Hkv, G, count, joined.size(3)});
  }
  // Keys that rows before `end` may see.
  int64_t Seen(int64_t end) const { return x.causal ? end : T; }

  // Scores [B, Hkv, G, count, seen], minus infinity where masked: a select, as a later key may be
  // NaN.
  at::Tensor Scores(int64_t first, int64_t count, int64_t seen) const {
    const at::Tensor keys = k.slice(2, 0, seen).transpose(2, 3);
    at::Tensor scores = Apart(at::matmul(Rows(q, first, count), keys).mul_(x.scale), count);
    if (x.causal) {
      const at::Tensor future = tokens.slice(0, 0, seen)
                                    .unsqueeze(0)
                                    .gt(tokens.slice(0, first, first + count).unsqueeze(1));
      scores.masked_fill_(future, -kInfinity);
    }
    if (x.mask.defined())
      scores.masked_fill_(x.mask.slice(3, 0, seen).logical_not().unsqueeze(2), -kInfinity);
    return scores;
  }
};

}  // namespace

std::tuple<at::Tensor, at::Tensor> ForwardChunked(const Concatenated& x) {
  const Chunks c{x};
  const auto options = x.q.options().dtype(c.exact);
  at::Tensor out = at::empty({c.B, c.Hkv, c.G, c.T, x.v.size(3)}, x.q.options());
  at::Tensor lse = at::empty({c.B, c.Hkv, c.G, c.T}, options);
  for (int64_t first = 0; first < c.T && x.q.numel() > 0; first += c.rows) {
    const int64_t count = std::min(c.rows, c.T - first), seen = c.Seen(first + count);
    at::Tensor weights = c.Scores(first, count, seen);
    const at::Tensor largest = weights.amax(4, /*keepdim=*/true);
    weights.sub_(largest).exp_();
    const at::Tensor sum = weights.sum(4, /*keepdim=*/true);
    const at::Tensor product =
        at::matmul(weights.reshape({c.B, c.Hkv, c.G * count, seen}), c.v.slice(2, 0, seen));
    out.slice(3, first, first + count).copy_(c.Apart(product, count).div(sum));
    lse.slice(3, first, first + count).copy_((largest + sum.log()).squeeze(4));
  }
  return {out.reshape({c.B, c.H, c.T, x.v.size(3)}), lse.reshape({c.B, c.H, c.T})};
}

FullGradients BackwardChunked(const Concatenated& x, const at::Tensor& d_out, const at::Tensor& out,
                              const at::Tensor& lse) {
  const Chunks c{x};
  const at::Tensor d_o = c.Grouped(d_out), rows_lse = lse.reshape({c.B, c.Hkv, c.G, c.T, 1});
  const at::Tensor delta = c.Grouped(out).mul(d_o).sum(4, /*keepdim=*/true);
  at::Tensor d_q = at::zeros_like(c.q), d_k = at::zeros_like(c.k), d_v = at::zeros_like(c.v);
  for (int64_t first = 0; first < c.T && x.q.numel() > 0; first += c.rows) {
    const int64_t count = std::min(c.rows, c.T - first), seen = c.Seen(first + count);
    const auto joined = [&](const at::Tensor& wide) {
      return wide.reshape({c.B, c.Hkv, c.G * count, seen});
    };
    const at::Tensor d_rows = c.Rows(d_o, first, count), q_rows = c.Rows(c.q, first, count);
    at::Tensor weights = c.Scores(first, count, seen);
    weights.sub_(rows_lse.slice(3, first, first + count)).exp_();
    d_v.slice(2, 0, seen).add_(at::matmul(joined(weights).transpose(2, 3), d_rows));
    at::Tensor d_scores = c.Apart(at::matmul(d_rows, c.v.slice(2, 0, seen).transpose(2, 3)), count);
    d_scores.sub_(delta.slice(3, first, first + count)).mul_(weights).mul_(x.scale);
    d_q.slice(3, first, first + count)
        .copy_(c.Apart(at::matmul(joined(d_scores), c.k.slice(2, 0, seen)), count));
    d_k.slice(2, 0, seen).add_(at::matmul(joined(d_scores).transpose(2, 3), q_rows));
  }
  return {d_q.reshape({c.B, c.H, c.T, x.q.size(3)}), d_k, d_v};
}

}  // namespace hkt::ops
