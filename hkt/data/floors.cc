#include "hkt/data/floors.h"

#include <algorithm>
#include <cmath>

#include "hkt/base/error.h"

namespace hkt::data {
namespace {

void LogCounts(std::span<const uint16_t> tokens, std::span<float> counts) {
  std::fill(counts.begin(), counts.end(), 0.0f);
  for (uint16_t token : tokens) {
    if (token < counts.size()) counts[token] += 1;
  }
  for (float& count : counts) count = std::log1p(count);
}

LogisticRegression FitCounts(const Dataset& train, int64_t vocabulary, int64_t classes) {
  const auto width = static_cast<size_t>(vocabulary);
  // Counted once: the fit goes over the examples some hundred times.
  std::vector<float> counts(static_cast<size_t>(train.size()) * width);
  for (int64_t i = 0; i < train.size(); ++i)
    LogCounts(train.sequence(i), std::span(counts).subspan(static_cast<size_t>(i) * width, width));
  return LogisticRegression(train.labels, vocabulary, classes, [&](int64_t i, std::span<float> x) {
    const auto row = counts.begin() + i * vocabulary;
    std::copy(row, row + vocabulary, x.begin());
  });
}

size_t CommonLength(const Dataset& train) {
  Check(train.size() > 0, "logistic regression: there are no examples to fit");
  const size_t values = train.sequence(0).size();
  for (int64_t i = 0; i < train.size(); ++i) {
    Check(train.sequence(i).size() == values,
          "regression on values needs sequences of one length; ", "the first has ", values,
          " values, sequence ", i + 1, " ", train.sequence(i).size());
  }
  return values;
}

int32_t Best(const std::vector<double>& probabilities) {
  return static_cast<int32_t>(std::max_element(probabilities.begin(), probabilities.end()) -
                              probabilities.begin());
}

}  // namespace

double MajorityAccuracy(const Dataset& train, const Dataset& evaluated, int64_t classes) {
  const std::vector<double> shares = LabelShares(train, classes);
  const auto majority = std::max_element(shares.begin(), shares.end()) - shares.begin();
  return LabelShares(evaluated, classes)[majority];
}

double Accuracy(const Dataset& dataset,
                const std::function<int32_t(std::span<const uint16_t>)>& predict) {
  int64_t right = 0;
  for (int64_t i = 0; i < dataset.size(); ++i)
    right += predict(dataset.sequence(i)) == dataset.labels[i];
  return dataset.size() > 0 ? static_cast<double>(right) / static_cast<double>(dataset.size())
                            : 0.0;
}

CountRegression::CountRegression(const Dataset& train, int64_t vocabulary, int64_t classes)
    : vocabulary_(vocabulary), regression_(FitCounts(train, vocabulary, classes)) {}

std::vector<double> CountRegression::Probabilities(std::span<const uint16_t> tokens) const {
  std::vector<float> counts(static_cast<size_t>(vocabulary_));
  LogCounts(tokens, counts);
  return regression_.Probabilities(counts);
}

int32_t CountRegression::Predict(std::span<const uint16_t> tokens) const {
  return Best(Probabilities(tokens));
}

double CountRegression::Accuracy(const Dataset& dataset) const {
  return data::Accuracy(dataset, [&](std::span<const uint16_t> tokens) { return Predict(tokens); });
}

ValueRegression::ValueRegression(const Dataset& train, int64_t classes, int64_t iterations)
    : values_(CommonLength(train)),
      regression_(train.labels, static_cast<int64_t>(values_), classes,
                  [&](int64_t i, std::span<float> x) {
                    const std::span<const uint16_t> values = train.sequence(i);
                    std::copy(values.begin(), values.end(), x.begin());
                  },
                  {.iterations = iterations}) {}

int32_t ValueRegression::Predict(std::span<const uint16_t> values) const {
  Check(values.size() == values_, "a sequence of ", values.size(), " values, fitted were ",
        values_);
  const std::vector<float> x(values.begin(), values.end());
  return Best(regression_.Probabilities(x));
}

double ValueRegression::Accuracy(const Dataset& dataset) const {
  return data::Accuracy(dataset, [&](std::span<const uint16_t> values) { return Predict(values); });
}

}  // namespace hkt::data
