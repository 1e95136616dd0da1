#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "hkt/analysis/decomposition.h"

// The decomposition of one head's scores at every number of levels (docs/theory.md, 3.1, target
// T1): S* = gain sum_{l < L} w_l z_i^T M^(l) z_j, the head's own undecimated scores, against its
// first L' levels, decimated, with weights w_l / sum_{l < L'} w_l.

namespace hkt::analysis {

struct Truncation {
  int64_t levels = 0;  // L'
  ErrorTerms terms;
  // (sum_{l >= L'} |a_l| |St_l|)^2 >= E_H, a_l = gain w_l: 3.2, both sides measured.
  double tail_bound = 0;
  // |sum_l a_l (St_l - S_l)|^2 >= E_Q where all levels are there: 3.3. NaN for fewer levels.
  double quantisation_bound = 0;
};

struct HeadTruncations {
  std::vector<Truncation> truncations;  // L' = 1 … L
  double target = 0;                    // |S*|^2
  std::vector<double> terms;            // |a_l| |St_l|, [L]
  double decay_rate = 0;                // rho_hat of these
};

// means: RowStack::Means() of columns [decimated 2L, undecimated 2L] (pair_scores.h); weights [L].
HeadTruncations DecomposeHead(const at::Tensor& means, const at::Tensor& weights, double gain);

// Parts of E_O of L' levels around the least-squares fit on training sequences.
OptimisationParts SplitHead(const at::Tensor& means, const at::Tensor& train_means,
                            const at::Tensor& weights, double gain, int64_t levels);

// Coefficients [2L'] of the first L' levels' columns: gain w_l / sum_{l < L'} w_l, twice.
at::Tensor TruncatedCoefficients(const at::Tensor& weights, double gain, int64_t levels);

// Columns of a family [n, 2L] that belong to the first L' levels: [n, 2L'].
at::Tensor TruncatedColumns(const at::Tensor& columns, int64_t levels);

}  // namespace hkt::analysis
