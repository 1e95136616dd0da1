#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// The error of a model's scores, split into what it lacks, what its pyramid loses and what training
// left (docs/theory.md, 3.1 and 3.4). Functions here take samples of scores, centred per row as the
// softmax sees them, or anything with the same inner products. Squares are sums over the rows; over
// the rows of RowStack::Means() a sum is the mean over all samples.

namespace hkt::analysis {

// U is spanned by the level scores of the model's own, decimated pyramid, V by these and by those
// of the undecimated one; Pi is the orthogonal projection. With S_hat in U, by Pythagoras twice,
//   |S* - S_hat|^2 = |S* - Pi_V S*|^2 + |Pi_V S* - Pi_U S*|^2 + |Pi_U S* - S_hat|^2.
struct ErrorTerms {
  double hierarchical = 0;  // E_H: no score of these levels reaches it
  double quantisation = 0;  // E_Q: lost because coarse levels are kept at every s^l-th token only
  double optimisation = 0;  // E_O: other coefficients of the same features would reach it
  double total = 0;         // the left side, measured by itself
  int64_t rank_u = 0, rank_v = 0;

  double sum() const { return hierarchical + quantisation + optimisation; }
  // (sum - total) / total, rounding when the identity holds; 0 where both are 0.
  double gap() const;
};

// target, model [n]; decimated [n, p], undecimated [n, q].
ErrorTerms Decompose(const at::Tensor& target, const at::Tensor& model, const at::Tensor& decimated,
                     const at::Tensor& undecimated);

// E_O on a held-out batch around S_n, the least-squares fit of the target in U on a training batch:
//   E_O = |Pi_U S* - S_n|^2 + |S_n - S_hat|^2 + 2 <Pi_U S* - S_n, S_n - S_hat>.
struct OptimisationParts {
  double finite_sample = 0;  // of the fit on a finite batch
  double training = 0;       // of the model's distance to that fit
  double cross = 0;
  // On the training batch itself, exactly: loss(S_hat) - loss(S_n) = |S_hat - S_n|^2.
  double train_excess = 0, train_distance = 0;

  double sum() const { return finite_sample + training + cross; }
};

// Columns of U on the held-out and on the training batch [n, p], [m, p], the target on both, and
// the model's coefficients [p] on these columns. Give Means() of both: the parts are then means.
OptimisationParts SplitOptimisation(const at::Tensor& held_out, const at::Tensor& held_out_target,
                                    const at::Tensor& train, const at::Tensor& train_target,
                                    const at::Tensor& coefficients);

}  // namespace hkt::analysis
