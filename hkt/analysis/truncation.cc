#include "hkt/analysis/truncation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/mv.h>

#include <cmath>
#include <limits>

#include "hkt/analysis/tail.h"

namespace hkt::analysis {

at::Tensor TruncatedCoefficients(const at::Tensor& weights, double gain, int64_t levels) {
  const at::Tensor used = weights.narrow(0, 0, levels);
  const at::Tensor once = gain * used / used.sum();
  return at::cat({once, once});
}

at::Tensor TruncatedColumns(const at::Tensor& columns, int64_t levels) {
  const int64_t L = columns.size(1) / 2;
  return at::cat({columns.narrow(1, 0, levels), columns.narrow(1, L, levels)}, 1);
}

HeadTruncations DecomposeHead(const at::Tensor& means, const at::Tensor& weights, double gain) {
  const int64_t L = weights.size(0);
  const at::Tensor decimated = means.narrow(1, 0, 2 * L),
                   undecimated = means.narrow(1, 2 * L, 2 * L);
  const at::Tensor a = gain * weights;
  const at::Tensor target = at::mv(undecimated, at::cat({a, a}));
  HeadTruncations head;
  head.target = target.square().sum().item<double>();
  for (int64_t l = 0; l < L; ++l) {
    const at::Tensor level = undecimated.select(1, l) + undecimated.select(1, L + l);
    head.terms.push_back((a[l] * level).square().sum().sqrt().item<double>());
  }
  head.decay_rate = DecayRate(head.terms);
  const std::vector<double> bounds = TailBounds(head.terms);
  for (int64_t levels = 1; levels <= L; ++levels) {
    const at::Tensor u = TruncatedColumns(decimated, levels);
    const at::Tensor model = at::mv(u, TruncatedCoefficients(weights, gain, levels));
    Truncation truncation{
        .levels = levels,
        .terms = Decompose(target, model, u, TruncatedColumns(undecimated, levels)),
        .tail_bound = bounds[static_cast<size_t>(levels)],
        .quantisation_bound = std::numeric_limits<double>::quiet_NaN()};
    if (levels == L) {
      truncation.quantisation_bound =
          (target - at::mv(decimated, at::cat({a, a}))).square().sum().item<double>();
    }
    head.truncations.push_back(truncation);
  }
  return head;
}

OptimisationParts SplitHead(const at::Tensor& means, const at::Tensor& train_means,
                            const at::Tensor& weights, double gain, int64_t levels) {
  const int64_t L = weights.size(0);
  const at::Tensor a = gain * weights, twice = at::cat({a, a});
  const auto target = [&](const at::Tensor& m) { return at::mv(m.narrow(1, 2 * L, 2 * L), twice); };
  const auto columns = [&](const at::Tensor& m) {
    return TruncatedColumns(m.narrow(1, 0, 2 * L), levels);
  };
  return SplitOptimisation(columns(means), target(means), columns(train_means), target(train_means),
                           TruncatedCoefficients(weights, gain, levels));
}

}  // namespace hkt::analysis
