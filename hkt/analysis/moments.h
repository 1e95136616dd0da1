#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace hkt::analysis {

// Means and covariances of the rows of several sequences, added one sequence at a time. All by
// 1/n, in double.
class Moments {
 public:
  void Add(const at::Tensor& rows);  // [n, d], one sequence

  int64_t rows() const { return n_; }
  at::Tensor Mean() const;        // [d], over all rows
  at::Tensor Covariance() const;  // [d, d], of all rows around their common mean
  // Of the rows around the mean of their own sequence: what pairs inside a sequence see.
  at::Tensor WithinCovariance() const;

 private:
  int64_t n_ = 0;
  at::Tensor sum_, outer_, between_;  // between_: sum of n_b mean_b mean_b^T
};

// Moments of every layer's levels: moments[layer][level].
using LevelMoments = std::vector<std::vector<Moments>>;

}  // namespace hkt::analysis
