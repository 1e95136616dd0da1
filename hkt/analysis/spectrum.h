#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

// Spectra of the score forms M = W_Q W_K^T / sqrt(D) and of their Gram matrices on tokens, from
// matrices of at most 2 D columns (theory.md 1.1, 1.2, 2.5). Everything in double.

namespace hkt::analysis {

// Signs and sizes of the eigenvalues of a symmetric matrix of order n of which all nonzero ones are
// given. An eigenvalue is zero at |mu| <= 1e-10 max|mu|.
struct Inertia {
  int64_t positive = 0, negative = 0, zero = 0;  // sum n
  double min = 0, max = 0;                       // of all n
  double trace = 0, energy = 0;                  // sum mu, sum mu^2
  double negative_energy = 0;                    // sum over mu < 0 of mu^2, as a share; NaN for 0
  std::vector<double> nonzero;                   // ascending

  int64_t rank() const { return positive + negative; }
  bool psd() const { return negative == 0; }
  double negative_share() const;  // n_- / (n_- + n_+); NaN for the zero matrix
};
Inertia InertiaOf(const at::Tensor& eigenvalues, int64_t n);

// M = W_Q W_K^T scale with W_Q, W_K [d, D]: with [W_Q W_K] = basis R (thin QR), r = min(d, 2 D),
// M_s = basis symmetric basis^T and M_a = basis skew basis^T.
struct ReducedForm {
  at::Tensor basis;      // [d, r], orthonormal columns
  at::Tensor symmetric;  // [r, r]
  at::Tensor skew;       // [r, r]

  Inertia SymmetricInertia() const;
  int64_t SkewRank() const;  // even
};
ReducedForm Reduce(const at::Tensor& query, const at::Tensor& key, double scale);

// A level's part of the Gram matrix G = sum_l w_l P_l X^(l) M_s^(l) X^(l)T P_l^T over T tokens.
struct GramPart {
  at::Tensor rows;  // [T_l, d]
  int64_t step;     // s^l, tokens a row stands for
  double weight;    // w_l >= 0
  ReducedForm form;
};

// Of one level and of their sum; nothing T x T is formed.
Inertia PartInertia(const GramPart& part, int64_t T);
Inertia GramInertia(const std::vector<GramPart>& parts, int64_t T);

// Bounds for any M (theory.md 1.1, 1.2).
//   rank G <= min(T, sum_l min(T_l, rank M_s^(l))), and sharper the chain R_l = min(T_l, R_{l+1} +
//   rank M_s^(l)), rank G <= R_0. Levels of weight 0 do not count.
struct RankBounds {
  int64_t sum = 0, chain = 0;
};
RankBounds GramRankBounds(const std::vector<GramPart>& parts, int64_t T);
//   lambda_min(G) >= - sum_l w_l max(0, -lambda_min(M_s^(l))) ||P_l X^(l)||^2 (operator norm)
double GramDefectBound(const std::vector<GramPart>& parts, int64_t T);

}  // namespace hkt::analysis
