#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

// Least squares on many rows and few columns: the rows are never kept, LAPACK does the rest.

namespace hkt::analysis {

// Rows of a matrix A [n, columns] that arrive in chunks, kept as the R factor of its QR
// decomposition: R^T R = A^T A, without the loss of digits of forming A^T A. What depends on inner
// products of columns only (norms, projections, errors of a fit) is the same of R as of A.
class RowStack {
 public:
  explicit RowStack(int64_t columns);

  // rows [n, columns] in double, n >= 0. Error for another width or NaN.
  void Add(const at::Tensor& rows);
  // The rows of another stack of the same width.
  void Add(const RowStack& other);

  int64_t count() const { return count_; }  // rows so far
  // [min(n, columns), columns], R / sqrt(n): inner products of its columns are means over the
  // rows. Error while there are none.
  at::Tensor Means() const;

 private:
  int64_t columns_;
  int64_t count_ = 0;
  at::Tensor r_;
};

struct Fit {
  at::Tensor coefficients;  // [p], the shortest of the best
  at::Tensor fitted;        // [n], the orthogonal projection of the target on the columns
  int64_t rank = 0;
};

// Projects target [n] on the span of the columns of features [n, p], by singular values; those
// below `tolerance` of the largest count as 0.
Fit LeastSquares(const at::Tensor& features, const at::Tensor& target, double tolerance = 1e-10);

}  // namespace hkt::analysis
