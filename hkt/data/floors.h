#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hkt/data/dataset.h"
#include "hkt/data/regression.h"

// What no model should be proud of: accuracies that need no order of the tokens, or no more than
// one weight a position.

namespace hkt::data {

// Share of `evaluated` that has the most frequent label of `train` (of equally frequent ones the
// smallest).
double MajorityAccuracy(const Dataset& train, const Dataset& evaluated, int64_t classes);

// Share of the data set that `predict` labels as it is labelled; 0 for an empty one.
double Accuracy(const Dataset& dataset,
                const std::function<int32_t(std::span<const uint16_t>)>& predict);

// Logistic regression on log(1 + count) of every token.
class CountRegression {
 public:
  CountRegression(const Dataset& train, int64_t vocabulary, int64_t classes);

  std::vector<double> Probabilities(std::span<const uint16_t> tokens) const;  // [classes]
  int32_t Predict(std::span<const uint16_t> tokens) const;
  double Accuracy(const Dataset& dataset) const;
  int64_t iterations() const { return regression_.iterations(); }

 private:
  int64_t vocabulary_;
  LogisticRegression regression_;
};

// Logistic regression on the values at every position (grey values or channels), for data whose
// sequences are all of one length: an Error for others. At most `iterations` of L-BFGS, as the
// optimum of a thousand features is far and no better on other data: the accuracy stands still long
// before.
class ValueRegression {
 public:
  static constexpr int64_t kIterations = 200;

  ValueRegression(const Dataset& train, int64_t classes, int64_t iterations = kIterations);

  int32_t Predict(std::span<const uint16_t> values) const;
  double Accuracy(const Dataset& dataset) const;
  int64_t iterations() const { return regression_.iterations(); }

 private:
  size_t values_;
  LogisticRegression regression_;
};

}  // namespace hkt::data
