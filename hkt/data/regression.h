#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hkt/data/minimise.h"

namespace hkt::data {

// Multinomial logistic regression: mean cross entropy plus an L2 penalty of 1e-4 / 2 on the weights
// but not on the biases, over features that are standardised on the examples (one that never varies
// has weight 0), fitted by L-BFGS on all examples at once from zero: the same result every time.
// Products of a block of rows are in float, sums over blocks in double, which leaves a gradient
// right to about 1e-6.
class LogisticRegression {
 public:
  // Fills the features of example i. Called several times for each.
  using Row = std::function<void(int64_t i, std::span<float> x)>;

  // Error without examples.
  LogisticRegression(std::span<const int32_t> labels, int64_t features, int64_t classes,
                     const Row& row, const MinimiseOptions& options = {});

  std::vector<double> Probabilities(std::span<const float> x) const;  // [classes]
  int64_t iterations() const { return iterations_; }

 private:
  double Loss(std::span<const int32_t> labels, const Row& row, const std::vector<double>& weights,
              std::vector<double>& gradient) const;

  size_t features_, classes_;
  std::vector<float> mean_, scale_;  // of every feature; scale 0 where it never varies
  std::vector<double> weights_;      // [classes, features + 1], the last column is the bias
  int64_t iterations_ = 0;
};

}  // namespace hkt::data
