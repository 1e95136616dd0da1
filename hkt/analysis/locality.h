#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

// Preference of a level's kernel k_l(i, j) = x_{tau_l(i)}^T M_s x_{tau_l(j)} for near tokens
// (theory.md 1.3).

namespace hkt::analysis {

// LP_l = tr(M_s Sigma) / sqrt(tr(M Sigma M^T Sigma)): mean of the level's scores over pairs in one
// cell minus the mean over all pairs, over the size that scores of independent tokens have. Query,
// key [d, D], sigma [d, d] the rows' 1/n covariance. NaN where the scores do not vary.
struct Locality {
  double excess = 0;      // tr(M_s Sigma), in score units
  double preference = 0;  // LP_l
};
Locality LocalPreference(const at::Tensor& query, const at::Tensor& key, double scale,
                         const at::Tensor& sigma);

// Sums over the pairs (i, i - distance) of one sequence.
struct DistanceSums {
  double pairs = 0, same_cell = 0;
  double kernel = 0;      // sum of k_l
  double level = 0;       // the same sum, were k_l everywhere its mean over all T^2 pairs
  double defined = 0;     // pairs with k_l(i,i) k_l(j,j) > 0, for which
  double normalised = 0;  // khat_l = k_l(i,j) / sqrt(k_l(i,i) k_l(j,j)) exists; its sum

  void Add(const DistanceSums& other);
  // Mean of k_l at this distance less its mean over all pairs, each sequence beside its own.
  double excess() const { return (kernel - level) / pairs; }
};

// 0, 1, 2, 3, 4, 6, 8, 12, 16, …, below T.
std::vector<int64_t> ProfileDistances(int64_t T);

// rows [T_l, d], each for `step` of the T tokens; one result a distance. O(T d) a distance.
std::vector<DistanceSums> DistanceProfile(const at::Tensor& rows, const at::Tensor& query,
                                          const at::Tensor& key, double scale, int64_t T,
                                          int64_t step, const std::vector<int64_t>& distances);

}  // namespace hkt::analysis
