#include "hkt/data/regression.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "hkt/base/error.h"

namespace hkt::data {
namespace {

using Vector = std::vector<double>;

constexpr double kPenalty = 1e-4;

// Rows, and features, that a product holds in registers: loops of this constant length become SIMD
// on every target without a word about it.
constexpr size_t kTile = 16;
using Tile = std::array<float, kTile>;

// Returns the logarithm of the sum that it divides by.
double Softmax(Vector& scores) {
  const double top = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - top);
  for (double& score : scores) score /= total;
  return std::log(total) + top;
}

// 16 standardised rows, both ways round; the number of features is filled up with zeros.
struct Block {
  explicit Block(size_t features)
      : width((features + kTile - 1) / kTile * kTile), rows(kTile * width), columns(features) {}

  size_t width;
  std::vector<float> rows;    // [kTile, width]
  std::vector<Tile> columns;  // [features]
};

}  // namespace

LogisticRegression::LogisticRegression(std::span<const int32_t> labels, int64_t features,
                                       int64_t classes, const Row& row,
                                       const MinimiseOptions& options)
    : features_(static_cast<size_t>(features)),
      classes_(static_cast<size_t>(classes)),
      mean_(features_),
      scale_(features_) {
  Check(!labels.empty(), "logistic regression: there are no examples to fit");
  const double n = static_cast<double>(labels.size());
  std::vector<float> x(features_);
  Vector sums(features_, 0.0), squares(features_, 0.0);
  for (size_t i = 0; i < labels.size(); ++i) {
    row(static_cast<int64_t>(i), x);
    for (size_t f = 0; f < features_; ++f) {
      sums[f] += x[f];
      squares[f] += static_cast<double>(x[f]) * x[f];
    }
  }
  for (size_t f = 0; f < features_; ++f) {
    const double mean = sums[f] / n, variance = squares[f] / n - mean * mean;
    mean_[f] = static_cast<float>(mean);
    scale_[f] = variance > 1e-12 ? static_cast<float>(1 / std::sqrt(variance)) : 0.0f;
  }
  weights_.assign(classes_ * (features_ + 1), 0.0);
  iterations_ = Minimise(
      [&](const Vector& weights, Vector& gradient) { return Loss(labels, row, weights, gradient); },
      weights_, options);
}

double LogisticRegression::Loss(std::span<const int32_t> labels, const Row& row,
                                const Vector& weights, Vector& gradient) const {
  const size_t stride = features_ + 1;
  const std::vector<float> narrow(weights.begin(), weights.end());
  std::fill(gradient.begin(), gradient.end(), 0.0);
  Block block(features_);
  std::vector<float> x(features_);
  std::vector<Tile> residual(classes_);
  Vector p(classes_);
  double sum = 0;
  for (size_t begin = 0; begin < labels.size(); begin += kTile) {
    const size_t count = std::min(kTile, labels.size() - begin);
    std::fill(block.rows.begin(), block.rows.end(), 0.0f);
    std::fill(block.columns.begin(), block.columns.end(), Tile{});
    for (size_t r = 0; r < count; ++r) {
      row(static_cast<int64_t>(begin + r), x);
      float* z = block.rows.data() + r * block.width;
      for (size_t f = 0; f < features_; ++f) z[f] = (x[f] - mean_[f]) * scale_[f];
      for (size_t f = 0; f < features_; ++f) block.columns[f][r] = z[f];
    }
    // Scores of all rows, class by class; kept in `residual` at first.
    for (size_t c = 0; c < classes_; ++c) {
      const float* w = narrow.data() + c * stride;
      Tile scores;
      scores.fill(w[features_]);
      for (size_t f = 0; f < features_; ++f) {
        for (size_t r = 0; r < kTile; ++r) scores[r] += w[f] * block.columns[f][r];
      }
      residual[c] = scores;
    }
    for (size_t r = 0; r < kTile; ++r) {
      if (r >= count) {
        for (Tile& of_class : residual) of_class[r] = 0;
        continue;
      }
      const auto label = static_cast<size_t>(labels[begin + r]);
      for (size_t c = 0; c < classes_; ++c) p[c] = residual[c][r];
      const double score = p[label];
      sum += Softmax(p) - score;
      for (size_t c = 0; c < classes_; ++c)
        residual[c][r] = static_cast<float>(p[c] - (c == label ? 1 : 0));
    }
    for (size_t c = 0; c < classes_; ++c) {
      double* g = gradient.data() + c * stride;
      for (size_t f = 0; f < features_; f += kTile) {
        Tile part{};
        for (size_t r = 0; r < kTile; ++r) {
          const float* z = block.rows.data() + r * block.width + f;
          for (size_t j = 0; j < kTile; ++j) part[j] += residual[c][r] * z[j];
        }
        for (size_t j = 0; j < std::min(kTile, features_ - f); ++j) g[f + j] += part[j];
      }
      for (float one : residual[c]) g[features_] += one;
    }
  }
  const double n = static_cast<double>(labels.size());
  double penalty = 0;
  for (size_t k = 0; k < weights.size(); ++k) {
    gradient[k] /= n;
    if (k % stride == features_) continue;
    gradient[k] += kPenalty * weights[k];
    penalty += kPenalty / 2 * weights[k] * weights[k];
  }
  return sum / n + penalty;
}

std::vector<double> LogisticRegression::Probabilities(std::span<const float> x) const {
  Vector scores(classes_);
  for (size_t c = 0; c < classes_; ++c) {
    const double* w = weights_.data() + c * (features_ + 1);
    scores[c] = w[features_];
    for (size_t f = 0; f < features_; ++f) scores[c] += w[f] * ((x[f] - mean_[f]) * scale_[f]);
  }
  Softmax(scores);
  return scores;
}

}  // namespace hkt::data
