#include "hkt/kernels/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hkt/base/dims.h"

namespace hkt::kernels::reference {
namespace {

using Matrix = std::vector<double>;  // [n, n] or [n_l, n_l], row by row

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What the passes know of one head of one sequence. Everything is cut to the n tokens that the
// sequence has; a level's rows are its first n_l = ceil(n / s^l), as cell I begins at token I s^l.
struct Head {
  int64_t n, L, D, Dv;
  double scale;
  bool causal;
  const double* v;                              // rows of Dv
  std::vector<int64_t> cells = {};              // [L]: n_l
  std::vector<std::vector<int64_t>> cell = {};  // [L][n]: floor(i / s^l)
  std::vector<const double*> q = {}, k = {};    // [L] of rows of D
};

// Offsets of the head's rows in [B, H, T_l, D] and in [B, Hkv, T_l, D]; query head h reads key and
// value head floor(h / (H / Hkv)).
int64_t QueryRow(const Attention& a, int64_t b, int64_t h, int64_t l) {
  return (b * a.H + h) * LevelLength(a.T, a.stride, l);
}
int64_t KeyRow(const Attention& a, int64_t b, int64_t h, int64_t l) {
  return (b * a.Hkv + h / (a.H / a.Hkv)) * LevelLength(a.T, a.stride, l);
}

Head MakeHead(const Attention& a, int64_t b, int64_t h) {
  Head head{.n = a.lengths.empty() ? a.T : std::clamp<int64_t>(a.lengths[b], 0, a.T),
            .L = a.L,
            .D = a.D,
            .Dv = a.Dv,
            .scale = a.scale,
            .causal = a.causal,
            .v = a.value.data() + KeyRow(a, b, h, 0) * a.Dv};
  std::vector<int64_t> cell(head.n);
  for (int64_t i = 0; i < head.n; ++i) cell[i] = i;
  for (int64_t l = 0; l < a.L; ++l) {
    head.cells.push_back(LevelLength(head.n, a.stride, l));
    head.cell.push_back(cell);
    head.q.push_back(a.queries[l].data() + QueryRow(a, b, h, l) * a.D);
    head.k.push_back(a.keys[l].data() + KeyRow(a, b, h, l) * a.D);
    // floor(i / s^(l+1)) = floor(floor(i / s^l) / s): s^l itself may not fit in 64 bits.
    for (int64_t& c : cell) c /= a.stride;
  }
  return head;
}

// Pass 1, level scores:  S^(l)_IJ = scale * q^(l)_I . k^(l)_J
// A cell J > I lies in the future of every row of cell I: its key is not read, and the 0 that stays
// there is what pass 3 masks.
std::vector<Matrix> LevelScores(const Head& head) {
  std::vector<Matrix> level_scores;
  for (int64_t l = 0; l < head.L; ++l) {
    const int64_t n_l = head.cells[l];
    Matrix S(n_l * n_l, 0.0);
    for (int64_t I = 0; I < n_l; ++I) {
      for (int64_t J = 0; J < (head.causal ? I + 1 : n_l); ++J) {
        double dot = 0;
        for (int64_t d = 0; d < head.D; ++d)
          dot += head.q[l][I * head.D + d] * head.k[l][J * head.D + d];
        S[I * n_l + J] = head.scale * dot;
      }
    }
    level_scores.push_back(std::move(S));
  }
  return level_scores;
}

// Pass 2, fusion:  S_ij = sum_l S^(l)[floor(i / s^l), floor(j / s^l)]
// Each coarse score is repeated over its s^l x s^l cell, which is cut off at the sequence's end.
Matrix Fuse(const Head& head, const std::vector<Matrix>& level_scores) {
  const int64_t n = head.n;
  Matrix S(n * n, 0.0);
  for (int64_t l = 0; l < head.L; ++l) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j)
        S[i * n + j] += level_scores[l][head.cell[l][i] * head.cells[l] + head.cell[l][j]];
    }
  }
  return S;
}

// Pass 3, mask:  S_ij = -inf for j > i
// Token by token: of a cell on the diagonal, whose coarse score is there, a part lies in the
// future.
void Mask(const Head& head, Matrix& S) {
  if (!head.causal) return;
  for (int64_t i = 0; i < head.n; ++i) {
    for (int64_t j = i + 1; j < head.n; ++j) S[i * head.n + j] = -kInfinity;
  }
}

// Pass 4, softmax:  P_ij = exp(S_ij - lse_i),  lse_i = log sum_j exp(S_ij)
// The row's maximum m is taken out first, so that no exp overflows. Every row has a key, token 0.
Matrix Softmax(const Head& head, const Matrix& S, double* lse) {
  const int64_t n = head.n;
  Matrix P(n * n);
  for (int64_t i = 0; i < n; ++i) {
    const double m = *std::max_element(S.begin() + i * n, S.begin() + (i + 1) * n);
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += P[i * n + j] = std::exp(S[i * n + j] - m);
    for (int64_t j = 0; j < n; ++j) P[i * n + j] /= sum;
    lse[i] = m + std::log(sum);
  }
  return P;
}

// Pass 5, values:  out_i = sum_j P_ij v_j
// The future is left out, not multiplied by its weight 0: 0 times infinity is NaN.
void Values(const Head& head, const Matrix& P, double* out) {
  for (int64_t i = 0; i < head.n; ++i) {
    for (int64_t j = 0; j < (head.causal ? i + 1 : head.n); ++j) {
      for (int64_t d = 0; d < head.Dv; ++d)
        out[i * head.Dv + d] += P[i * head.n + j] * head.v[j * head.Dv + d];
    }
  }
}

// The backward passes: each is the derivative of the forward line that it quotes, the last first.

// Forward, pass 5:  out_i = sum_j P_ij v_j
//   dP_ij = d_out_i . v_j,   d_v_j = sum_i P_ij d_out_i
Matrix ValuesBackward(const Head& head, const Matrix& P, const double* d_out, double* d_v) {
  const int64_t n = head.n, Dv = head.Dv;
  Matrix dP(n * n, 0.0);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < (head.causal ? i + 1 : n); ++j) {
      for (int64_t d = 0; d < Dv; ++d) {
        dP[i * n + j] += d_out[i * Dv + d] * head.v[j * Dv + d];
        d_v[j * Dv + d] += P[i * n + j] * d_out[i * Dv + d];
      }
    }
  }
  return dP;
}

// Forward, pass 4:  P_ij = exp(S_ij - lse_i),  so  dP_ij / dS_ij' = P_ij (delta_jj' - P_ij')
//   dS_ij = P_ij (dP_ij - sum_j' P_ij' dP_ij')
// The sum is out_i . d_out_i, which is how the kernels have it without the row of P.
Matrix SoftmaxBackward(const Head& head, const Matrix& P, const Matrix& dP) {
  const int64_t n = head.n;
  Matrix dS(n * n);
  for (int64_t i = 0; i < n; ++i) {
    double delta = 0;
    for (int64_t j = 0; j < n; ++j) delta += P[i * n + j] * dP[i * n + j];
    for (int64_t j = 0; j < n; ++j) dS[i * n + j] = P[i * n + j] * (dP[i * n + j] - delta);
  }
  return dS;
}

// Forward, pass 3:  S_ij = -inf for j > i
// A constant, so nothing passes: dS_ij = 0. The softmax has given 0 already, as P_ij = 0; the line
// stands here for the symmetry.
void MaskBackward(const Head& head, Matrix& dS) {
  if (!head.causal) return;
  for (int64_t i = 0; i < head.n; ++i) {
    for (int64_t j = i + 1; j < head.n; ++j) dS[i * head.n + j] = 0;
  }
}

// Forward, pass 2:  S_ij = sum_l S^(l)[floor(i / s^l), floor(j / s^l)]
//   dS^(l)_IJ = sum of dS_ij over the tokens i of cell I and j of cell J
// What was repeated in the forward is summed in the backward.
std::vector<Matrix> FuseBackward(const Head& head, const Matrix& dS) {
  std::vector<Matrix> d_level_scores;
  for (int64_t l = 0; l < head.L; ++l) {
    Matrix d_level(head.cells[l] * head.cells[l], 0.0);
    for (int64_t i = 0; i < head.n; ++i) {
      for (int64_t j = 0; j < head.n; ++j)
        d_level[head.cell[l][i] * head.cells[l] + head.cell[l][j]] += dS[i * head.n + j];
    }
    d_level_scores.push_back(std::move(d_level));
  }
  return d_level_scores;
}

// Forward, pass 1:  S^(l)_IJ = scale * q^(l)_I . k^(l)_J
//   d_q^(l)_I = scale * sum_J dS^(l)_IJ k^(l)_J,   d_k^(l)_J = scale * sum_I dS^(l)_IJ q^(l)_I
void LevelScoresBackward(const Head& head, int64_t l, const Matrix& d_level, double* d_q,
                         double* d_k) {
  const int64_t n_l = head.cells[l], D = head.D;
  for (int64_t I = 0; I < n_l; ++I) {
    for (int64_t J = 0; J < (head.causal ? I + 1 : n_l); ++J) {
      const double g = head.scale * d_level[I * n_l + J];
      for (int64_t d = 0; d < D; ++d) {
        d_q[I * D + d] += g * head.k[l][J * D + d];
        d_k[J * D + d] += g * head.q[l][I * D + d];
      }
    }
  }
}

// Passes 1 to 4, which the backward begins with too.
AttentionMatrices Weights(const Head& head, double* lse) {
  AttentionMatrices m;
  m.level_scores = LevelScores(head);
  m.scores = Fuse(head, m.level_scores);
  Mask(head, m.scores);
  m.weights = Softmax(head, m.scores, lse);
  return m;
}

}  // namespace

AttentionOutput AttentionForward(const Attention& a) {
  AttentionOutput output{std::vector<double>(a.B * a.H * a.T * a.Dv, 0.0),
                         std::vector<double>(a.B * a.H * a.T, -kInfinity)};
  for (int64_t b = 0; b < a.B; ++b) {
    for (int64_t h = 0; h < a.H; ++h) {
      const Head head = MakeHead(a, b, h);
      const int64_t row = QueryRow(a, b, h, 0);
      const AttentionMatrices m = Weights(head, output.lse.data() + row);
      Values(head, m.weights, output.out.data() + row * a.Dv);
    }
  }
  return output;
}

namespace {

AttentionGradients ZeroGradients(const Attention& a) {
  AttentionGradients d;
  for (int64_t l = 0; l < a.L; ++l) {
    d.queries.emplace_back(a.queries[l].size(), 0.0);
    d.keys.emplace_back(a.keys[l].size(), 0.0);
  }
  d.value.assign(a.value.size(), 0.0);
  return d;
}

// Adds the gradients of one head. The H / Hkv query heads of a key head add to the same d_k and
// d_v.
AttentionMatrices HeadBackward(const Attention& a, const std::vector<double>& d_out, int64_t b,
                               int64_t h, AttentionGradients& d) {
  const Head head = MakeHead(a, b, h);
  std::vector<double> lse(head.n);
  AttentionMatrices m = Weights(head, lse.data());
  m.d_weights = ValuesBackward(head, m.weights, d_out.data() + QueryRow(a, b, h, 0) * a.Dv,
                               d.value.data() + KeyRow(a, b, h, 0) * a.Dv);
  m.d_scores = SoftmaxBackward(head, m.weights, m.d_weights);
  MaskBackward(head, m.d_scores);
  m.d_level_scores = FuseBackward(head, m.d_scores);
  for (int64_t l = 0; l < a.L; ++l)
    LevelScoresBackward(head, l, m.d_level_scores[l],
                        d.queries[l].data() + QueryRow(a, b, h, l) * a.D,
                        d.keys[l].data() + KeyRow(a, b, h, l) * a.D);
  return m;
}

}  // namespace

AttentionGradients AttentionBackward(const Attention& a, const std::vector<double>& d_out) {
  AttentionGradients d = ZeroGradients(a);
  for (int64_t b = 0; b < a.B; ++b) {
    for (int64_t h = 0; h < a.H; ++h) HeadBackward(a, d_out, b, h, d);
  }
  return d;
}

AttentionMatrices Matrices(const Attention& a, const std::vector<double>& d_out, int64_t b,
                           int64_t h) {
  AttentionGradients ignored = ZeroGradients(a);
  return HeadBackward(a, d_out, b, h, ignored);
}

}  // namespace hkt::kernels::reference
