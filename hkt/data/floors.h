#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hkt/data/dataset.h"

// What no model should be proud of: accuracies that need no order of the tokens.

namespace hkt::data {

// Share of `evaluated` that has the most frequent label of `train` (of equally frequent ones the
// smallest).
double MajorityAccuracy(const Dataset& train, const Dataset& evaluated, int64_t classes);

// Multinomial logistic regression on log(1 + count) of every token, standardised on the training
// split, with a small L2 penalty, fitted by L-BFGS on all examples at once in double: the same
// result every time.
class CountRegression {
 public:
  CountRegression(const Dataset& train, int64_t vocabulary, int64_t classes);

  std::vector<double> Probabilities(std::span<const uint16_t> tokens) const;  // [classes]
  int32_t Predict(std::span<const uint16_t> tokens) const;
  double Accuracy(const Dataset& dataset) const;
  int64_t iterations() const { return iterations_; }

 private:
  std::vector<double> Features(std::span<const uint16_t> tokens) const;

  int64_t classes_;
  std::vector<int64_t>
      feature_;  // of every token id its feature, or -1 where its count never varies
  std::vector<double> mean_, scale_;  // of every feature
  std::vector<double> weights_;       // [classes, features + 1], the last column is the bias
  int64_t iterations_ = 0;
};

}  // namespace hkt::data
