#include "hkt/kernels/attention_bound_test_util.h"

#include <algorithm>
#include <cmath>

#include "hkt/base/dims.h"
#include "hkt/testing/error_bound.h"

namespace hkt::kernels {
namespace {

using Numbers = std::vector<double>;

constexpr double u = testing::UnitRoundoff(24);
constexpr double kTiny = 0x1p-120;

// sum |a_d| |b_d| and sum a_d b_d.
struct Products {
  double absolute = 0, sum = 0;
};
Products Product(const double* a, const double* b, int64_t n) {
  Products p;
  for (int64_t d = 0; d < n; ++d) {
    p.absolute += std::abs(a[d] * b[d]);
    p.sum += a[d] * b[d];
  }
  return p;
}

// One level of one head: rows of q and k, their cells and the sums over pairs of cells.
struct Level {
  const double *q, *k;
  double *bound_q, *bound_k;
  int64_t cells;
  std::vector<int64_t> cell;     // [n]
  std::vector<Products> scores;  // [cells, cells], without the scale
  Numbers d_scores;              // [cells, cells]: sums of edS + N u |dS|
};

}  // namespace

AttentionBounds BoundsOf(const reference::Attention& a, const std::vector<double>& d_out,
                         const reference::AttentionOutput& output,
                         const reference::AttentionGradients& gradients, testing::Element element) {
  const double to_type = testing::UnitRoundoff(testing::SignificandOf(element));
  const double denormal = testing::DenormalRounding(element);
  const int64_t G = a.Hkv == 0 ? 1 : a.H / a.Hkv, D = a.D, Dv = a.Dv;
  const double T = static_cast<double>(a.T), terms = static_cast<double>(a.L * D) + 6;
  const double scale = std::abs(a.scale);
  AttentionBounds bounds;
  bounds.output = {Numbers(output.out.size()), Numbers(output.lse.size())};
  for (int64_t l = 0; l < a.L; ++l) {
    bounds.gradients.queries.emplace_back(a.queries[l].size());
    bounds.gradients.keys.emplace_back(a.keys[l].size());
  }
  bounds.gradients.value.resize(a.value.size());

  for (int64_t head = 0; head < a.B * a.H; ++head) {
    const int64_t b = head / a.H, kv = b * a.Hkv + head % a.H / G;
    const int64_t n = a.lengths.empty() ? a.T : std::clamp<int64_t>(a.lengths[b], 0, a.T);
    std::vector<Level> levels(a.L);
    std::vector<int64_t> cell(n);
    for (int64_t i = 0; i < n; ++i) cell[i] = i;
    for (int64_t l = 0; l < a.L; ++l) {
      const int64_t Tl = LevelLength(a.T, a.stride, l), cells = LevelLength(n, a.stride, l);
      levels[l] = {.q = a.queries[l].data() + head * Tl * D,
                   .k = a.keys[l].data() + kv * Tl * D,
                   .bound_q = bounds.gradients.queries[l].data() + head * Tl * D,
                   .bound_k = bounds.gradients.keys[l].data() + kv * Tl * D,
                   .cells = cells,
                   .cell = cell,
                   .scores = std::vector<Products>(cells * cells),
                   .d_scores = Numbers(cells * cells)};
      for (int64_t I = 0; I < cells; ++I) {
        for (int64_t J = 0; J < (a.causal ? I + 1 : cells); ++J)
          levels[l].scores[I * cells + J] = Product(levels[l].q + I * D, levels[l].k + J * D, D);
      }
      for (int64_t& c : cell) c /= a.stride;
    }
    const double* v = a.value.data() + kv * a.T * Dv;
    double* bound_v = bounds.gradients.value.data() + kv * a.T * Dv;
    Numbers error_S(n), P(n);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t row = head * a.T + i, keys = a.causal ? i + 1 : n;
      const double lse = output.lse[row];
      const double *out = output.out.data() + row * Dv, *g = d_out.data() + row * Dv;
      double largest = 0;
      for (int64_t j = 0; j < keys; ++j) {
        Products S;
        for (const Level& level : levels) {
          const Products& cells = level.scores[level.cell[i] * level.cells + level.cell[j]];
          S.absolute += cells.absolute;
          S.sum += cells.sum;
        }
        P[j] = std::exp(a.scale * S.sum - lse);
        error_S[j] = terms * u * scale * S.absolute;
        largest = std::max(largest, error_S[j]);
      }
      double* error_out = bounds.output.out.data() + row * Dv;
      for (int64_t j = 0; j < keys; ++j) {
        const double relative = std::expm1(error_S[j] + largest) + (2 * T + 32) * u;
        for (int64_t d = 0; d < Dv; ++d)
          error_out[d] += (P[j] * relative + kTiny) * std::abs(v[j * Dv + d]);
      }
      for (int64_t d = 0; d < Dv; ++d) error_out[d] += to_type * std::abs(out[d]) + denormal;
      const double error_lse = largest + (T + 16) * u + 4 * u * std::abs(lse);
      bounds.output.lse[row] = error_lse;

      const Products delta = Product(out, g, Dv);
      const double error_delta =
          Product(error_out, g, Dv).absolute + (static_cast<double>(Dv) + 4) * u * delta.absolute;
      for (int64_t j = 0; j < keys; ++j) {
        const double relative = std::expm1(error_S[j] + error_lse) + 16 * u;
        const Products dP = Product(g, v + j * Dv, Dv);
        const double difference = std::abs(dP.sum - delta.sum);
        const double inner =
            (static_cast<double>(Dv) + 8) * u * dP.absolute + error_delta + 4 * u * delta.absolute;
        const double error_dS =
            P[j] * (difference * relative + (1 + relative) * inner) + kTiny * (difference + inner);
        const double additions = 2 * T + 16 + T * static_cast<double>(G);
        for (Level& level : levels)
          level.d_scores[level.cell[i] * level.cells + level.cell[j]] +=
              error_dS + additions * u * P[j] * difference;
        for (int64_t d = 0; d < Dv; ++d)
          bound_v[j * Dv + d] +=
              (P[j] * (relative + (T * static_cast<double>(G) + 8) * u) + kTiny) * std::abs(g[d]);
      }
    }
    for (Level& level : levels) {
      for (int64_t I = 0; I < level.cells; ++I) {
        for (int64_t J = 0; J < level.cells; ++J) {
          const double error = scale * level.d_scores[I * level.cells + J];
          if (error == 0) continue;  // masked: the key there may be anything
          for (int64_t d = 0; d < D; ++d) {
            level.bound_q[I * D + d] += error * std::abs(level.k[J * D + d]);
            level.bound_k[J * D + d] += error * std::abs(level.q[I * D + d]);
          }
        }
      }
    }
  }
  const auto round = [&](Numbers& bound, const Numbers& exact) {
    for (size_t i = 0; i < bound.size(); ++i) {
      if (bound[i] > 0) bound[i] += to_type * std::abs(exact[i]) + denormal;  // else exactly 0
    }
  };
  for (int64_t l = 0; l < a.L; ++l) {
    round(bounds.gradients.queries[l], gradients.queries[l]);
    round(bounds.gradients.keys[l], gradients.keys[l]);
  }
  round(bounds.gradients.value, gradients.value);
  return bounds;
}

}  // namespace hkt::kernels
