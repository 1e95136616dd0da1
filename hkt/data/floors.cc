#include "hkt/data/floors.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>

#include "hkt/base/error.h"

namespace hkt::data {
namespace {

using Vector = std::vector<double>;

constexpr double kPenalty = 1e-4;
constexpr int64_t kMaxIterations = 500;
constexpr double kGradientTolerance =
    1e-5;  // largest component; accuracies stand still long before

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// y += a x
void Add(double a, const Vector& x, Vector& y) {
  for (size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
}

// Minimises a smooth convex function by L-BFGS (Nocedal and Wright, algorithm 7.5) with
// backtracking. value(x, gradient) fills the gradient. Returns the number of iterations.
int64_t Minimise(const std::function<double(const Vector&, Vector&)>& value, Vector& x) {
  constexpr size_t kMemory = 10;
  struct Pair {
    Vector s, y;
    double rho;
  };
  std::deque<Pair> pairs;
  Vector gradient(x.size()), next_gradient(x.size()), next(x.size());
  double f = value(x, gradient);
  for (int64_t iteration = 0; iteration < kMaxIterations; ++iteration) {
    double largest = 0;
    for (double g : gradient) largest = std::max(largest, std::fabs(g));
    if (largest <= kGradientTolerance) return iteration;

    Vector direction = gradient;
    Vector alpha(pairs.size());
    for (size_t i = pairs.size(); i-- > 0;) {
      alpha[i] = pairs[i].rho * Dot(pairs[i].s, direction);
      Add(-alpha[i], pairs[i].y, direction);
    }
    const double scale = pairs.empty()
                             ? 1 / std::sqrt(Dot(gradient, gradient))
                             : 1 / (pairs.back().rho * Dot(pairs.back().y, pairs.back().y));
    for (double& d : direction) d *= scale;
    for (size_t i = 0; i < pairs.size(); ++i) {
      Add(alpha[i] - pairs[i].rho * Dot(pairs[i].y, direction), pairs[i].s, direction);
    }
    const double slope = -Dot(gradient, direction);

    double step = 1, next_f = f;
    bool lower = false;
    for (int halvings = 0; halvings < 40 && !lower; ++halvings, step /= 2) {
      next = x;
      Add(-step, direction, next);
      next_f = value(next, next_gradient);
      lower = next_f <= f + 1e-4 * step * slope;
    }
    if (!lower) return iteration;  // rounding is all that is left

    Pair pair{next, next_gradient, 0};
    Add(-1, x, pair.s);
    Add(-1, gradient, pair.y);
    const double curvature = Dot(pair.s, pair.y);
    if (curvature > 0) {
      pair.rho = 1 / curvature;
      pairs.push_back(std::move(pair));
      if (pairs.size() > kMemory) pairs.pop_front();
    }
    x.swap(next);
    gradient.swap(next_gradient);
    f = next_f;
  }
  return kMaxIterations;
}

Vector LogCounts(std::span<const uint16_t> tokens, int64_t vocabulary) {
  Vector counts(static_cast<size_t>(vocabulary), 0.0);
  for (uint16_t token : tokens) {
    if (token < counts.size()) counts[token] += 1;
  }
  for (double& count : counts) count = std::log1p(count);
  return counts;
}

// scores[c] of features x, weights [classes, x.size() + 1].
void Scores(std::span<const double> x, const Vector& weights, std::span<double> scores) {
  const size_t row = x.size() + 1;
  for (size_t c = 0; c < scores.size(); ++c) {
    const double* w = weights.data() + c * row;
    double sum = w[x.size()];
    for (size_t i = 0; i < x.size(); ++i) sum += w[i] * x[i];
    scores[c] = sum;
  }
}

// Returns the logarithm of the sum that it divides by.
double Softmax(Vector& scores) {
  const double top = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - top);
  for (double& score : scores) score /= total;
  return std::log(total) + top;
}

}  // namespace

double MajorityAccuracy(const Dataset& train, const Dataset& evaluated, int64_t classes) {
  const std::vector<double> shares = LabelShares(train, classes);
  const auto majority = std::max_element(shares.begin(), shares.end()) - shares.begin();
  return LabelShares(evaluated, classes)[majority];
}

CountRegression::CountRegression(const Dataset& train, int64_t vocabulary, int64_t classes)
    : classes_(classes), feature_(static_cast<size_t>(vocabulary), -1) {
  Check(train.size() > 0, "count regression: the training split is empty");
  const size_t n = static_cast<size_t>(train.size());

  // Mean and spread of every token's log count; a token whose count never varies is no feature.
  Vector sums(feature_.size(), 0.0), squares(feature_.size(), 0.0);
  for (int64_t i = 0; i < train.size(); ++i) {
    const Vector counts = LogCounts(train.sequence(i), vocabulary);
    for (size_t v = 0; v < counts.size(); ++v) {
      sums[v] += counts[v];
      squares[v] += counts[v] * counts[v];
    }
  }
  for (size_t v = 0; v < feature_.size(); ++v) {
    const double mean = sums[v] / static_cast<double>(n);
    const double variance = squares[v] / static_cast<double>(n) - mean * mean;
    if (!(variance > 1e-12)) continue;
    feature_[v] = static_cast<int64_t>(mean_.size());
    mean_.push_back(mean);
    scale_.push_back(1 / std::sqrt(variance));
  }

  const size_t features = mean_.size(), row = features + 1;
  Vector x;
  x.reserve(n * features);
  for (int64_t i = 0; i < train.size(); ++i) {
    const Vector one = Features(train.sequence(i));
    x.insert(x.end(), one.begin(), one.end());
  }

  // Mean cross entropy plus the penalty on all weights but the bias.
  const auto loss = [&](const Vector& weights, Vector& gradient) {
    double sum = 0;
    std::fill(gradient.begin(), gradient.end(), 0.0);
    Vector p(static_cast<size_t>(classes_));
    for (size_t i = 0; i < n; ++i) {
      const std::span<const double> xi(x.data() + i * features, features);
      Scores(xi, weights, p);
      const size_t label = static_cast<size_t>(train.labels[i]);
      const double score = p[label];
      sum += Softmax(p) - score;
      for (size_t c = 0; c < p.size(); ++c) {
        const double residual = p[c] - (c == label ? 1 : 0);
        double* g = gradient.data() + c * row;
        for (size_t j = 0; j < features; ++j) g[j] += residual * xi[j];
        g[features] += residual;
      }
    }
    double penalty = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      gradient[k] /= static_cast<double>(n);
      if (k % row == features) continue;
      gradient[k] += kPenalty * weights[k];
      penalty += kPenalty / 2 * weights[k] * weights[k];
    }
    return sum / static_cast<double>(n) + penalty;
  };
  weights_.assign(static_cast<size_t>(classes_) * row, 0.0);
  iterations_ = Minimise(loss, weights_);
}

std::vector<double> CountRegression::Features(std::span<const uint16_t> tokens) const {
  const Vector counts = LogCounts(tokens, static_cast<int64_t>(feature_.size()));
  Vector x(mean_.size());
  for (size_t v = 0; v < counts.size(); ++v) {
    const int64_t f = feature_[v];
    if (f >= 0) x[f] = (counts[v] - mean_[f]) * scale_[f];
  }
  return x;
}

std::vector<double> CountRegression::Probabilities(std::span<const uint16_t> tokens) const {
  Vector p(static_cast<size_t>(classes_));
  Scores(Features(tokens), weights_, p);
  Softmax(p);
  return p;
}

int32_t CountRegression::Predict(std::span<const uint16_t> tokens) const {
  const Vector p = Probabilities(tokens);
  return static_cast<int32_t>(std::max_element(p.begin(), p.end()) - p.begin());
}

double CountRegression::Accuracy(const Dataset& dataset) const {
  int64_t right = 0;
  for (int64_t i = 0; i < dataset.size(); ++i)
    right += Predict(dataset.sequence(i)) == dataset.labels[i];
  return dataset.size() > 0 ? static_cast<double>(right) / static_cast<double>(dataset.size())
                            : 0.0;
}

}  // namespace hkt::data
