#include "hkt/data/minimise.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace hkt::data {
namespace {

using Vector = std::vector<double>;

double Dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// y += a x
void Add(double a, const Vector& x, Vector& y) {
  for (size_t i = 0; i < x.size(); ++i) y[i] += a * x[i];
}

}  // namespace

int64_t Minimise(const std::function<double(const Vector&, Vector&)>& value, Vector& x,
                 const MinimiseOptions& options) {
  constexpr size_t kMemory = 10;
  struct Pair {
    Vector s, y;
    double rho;
  };
  std::deque<Pair> pairs;
  Vector gradient(x.size()), next_gradient(x.size()), next(x.size());
  double f = value(x, gradient);
  for (int64_t iteration = 0; iteration < options.iterations; ++iteration) {
    double largest = 0;
    for (double g : gradient) largest = std::max(largest, std::fabs(g));
    if (largest <= options.gradient_tolerance) return iteration;

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
  return options.iterations;
}

}  // namespace hkt::data
