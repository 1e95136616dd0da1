#include "hkt/analysis/pair_scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/stack.h>

#include <cmath>

#include "hkt/analysis/quantisation.h"
#include "hkt/base/error.h"
#include "hkt/base/random.h"

namespace hkt::analysis {
namespace {

// Inner products of rows a[i] and b[j]; [H, P].
at::Tensor Products(const at::Tensor& a, const at::Tensor& i, const at::Tensor& b,
                    const at::Tensor& j) {
  return (a.index_select(1, i) * b.index_select(1, j)).sum(2);
}

}  // namespace

PairScores::PairScores(const Layer& layer, const SequenceLevels& levels)
    : T_(levels.z.at(0).size(0)) {
  Check(!layer.rotary, "rotary scores depend on the distance: there is no matrix M of a level");
  for (int64_t l = 0; l < layer.L; ++l) {
    const at::Tensor& z = levels.z.at(static_cast<size_t>(l));
    undecimated_.push_back(Read(layer, l, z));
    decimated_.push_back(l == 0 ? undecimated_[0] : Read(layer, l, FirstOfCell(z, layer.step(l))));
  }
}

PairScores::Vectors PairScores::Read(const Layer& layer, int64_t level,
                                     const at::Tensor& rows) const {
  const Projections projected = Project(layer, level, rows);
  Vectors vectors;
  vectors.q = projected.query * layer.scale;
  vectors.k = projected.key;
  const at::Tensor count = at::arange(1, T_ + 1, rows.options()).unsqueeze(1);
  const auto mean = [&](const at::Tensor& v) {
    return layer.causal ? at::cumsum(v, 1) / count : v.mean(1, /*keepdim=*/true).expand_as(v);
  };
  vectors.q_mean = mean(vectors.q);
  vectors.k_mean = mean(vectors.k);
  return vectors;
}

// forward[l] = S_ij, backward[l] = S_ji, both centred over row i.
at::Tensor PairScores::Columns(const std::vector<at::Tensor>& forward,
                               const std::vector<at::Tensor>& backward) {
  const at::Tensor f = at::stack(forward, -1), b = at::stack(backward, -1);
  return at::cat({(f + b) / 2, (f - b) / 2}, -1);
}

ScoreColumns PairScores::Uniform(const at::Tensor& i, const at::Tensor& j) const {
  const auto columns = [&](const std::vector<Vectors>& levels) {
    std::vector<at::Tensor> forward, backward;
    for (const Vectors& v : levels) {
      forward.push_back(Products(v.q, i, v.k, j) - Products(v.q, i, v.k_mean, i));
      backward.push_back(Products(v.k, i, v.q, j) - Products(v.k, i, v.q_mean, i));
    }
    return Columns(forward, backward);
  };
  return {columns(decimated_), columns(undecimated_)};
}

ScoreColumns PairScores::Weighted(int64_t head, const at::Tensor& rows, const at::Tensor& p,
                                  const at::Tensor& j) const {
  // a_row . (b_j - sum_t p_row,t b_t), [R M].
  const auto centred = [&](const at::Tensor& a, const at::Tensor& b) {
    const at::Tensor left = a.index_select(0, rows).unsqueeze(1);  // [R, 1, D]
    const at::Tensor right = b.index_select(0, j.flatten()).view({j.size(0), j.size(1), -1});
    return (left * (right - at::mm(p, b).unsqueeze(1))).sum(2).flatten();
  };
  const auto columns = [&](const std::vector<Vectors>& levels) {
    std::vector<at::Tensor> forward, backward;
    for (const Vectors& v : levels) {
      forward.push_back(centred(v.q[head], v.k[head]));
      backward.push_back(centred(v.k[head], v.q[head]));
    }
    return Columns(forward, backward);
  };
  return {columns(decimated_), columns(undecimated_)};
}

at::Tensor PairScores::Raw(const at::Tensor& i, const at::Tensor& j) const {
  std::vector<at::Tensor> scores;
  for (const Vectors& v : decimated_) scores.push_back(Products(v.q, i, v.k, j));
  return at::stack(scores, -1);
}

at::Tensor PairScores::Rows(int64_t head, int64_t level, const at::Tensor& rows,
                            bool undecimated) const {
  const Vectors& v = (undecimated ? undecimated_ : decimated_).at(static_cast<size_t>(level));
  return at::mm(v.q[head].index_select(0, rows), v.k[head].t());
}

PairDraw DrawPairs(int64_t T, int64_t count, bool causal, uint64_t seed) {
  Random random({seed, 0x7061697273u});
  PairDraw draw{at::empty({count}, at::kLong), at::empty({count}, at::kLong)};
  auto* i = draw.i.mutable_data_ptr<int64_t>();
  auto* j = draw.j.mutable_data_ptr<int64_t>();
  for (int64_t n = 0; n < count; ++n) {
    int64_t a = random.Between(0, T - 1);
    int64_t b = random.Between(0, causal ? T : T - 1);
    // Causal: of the T (T+1) pairs with b in 0 … T, b > a stand for (b - 1, a), and the others for
    // themselves; every j <= i is met twice.
    if (causal && b > a) {
      std::swap(a, b);
      a -= 1;
    }
    i[n] = a;
    j[n] = b;
  }
  return draw;
}

PairDraw AllPairs(int64_t T, bool causal) {
  std::vector<at::Tensor> i, j;
  for (int64_t row = 0; row < T; ++row) {
    j.push_back(at::arange(causal ? row + 1 : T, at::kLong));
    i.push_back(at::full_like(j.back(), row));
  }
  return {at::cat(i), at::cat(j)};
}

}  // namespace hkt::analysis
