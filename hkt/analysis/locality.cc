#include "hkt/analysis/locality.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/where.h>

#include <cmath>

namespace hkt::analysis {
namespace {

double Item(const at::Tensor& x) { return x.item<double>(); }

// Rows repeated to all tokens.
at::Tensor Repeated(const at::Tensor& rows, int64_t T, int64_t step) {
  return rows.index_select(0, at::arange(T, at::kLong).floor_divide(step));
}

}  // namespace

Locality LocalPreference(const at::Tensor& query, const at::Tensor& key, double scale,
                         const at::Tensor& sigma) {
  const at::Tensor sq = at::matmul(sigma, query), sk = at::matmul(sigma, key);
  const at::Tensor c = at::matmul(key.t(), sq), a = at::matmul(query.t(), sq),
                   b = at::matmul(key.t(), sk);
  const double excess = scale * Item(c.diagonal().sum());
  const double size = std::abs(scale) * std::sqrt(Item((a * b).sum()));
  return {excess, excess / size};
}

std::vector<int64_t> ProfileDistances(int64_t T) {
  std::vector<int64_t> distances;
  for (const int64_t small : {0, 1, 2, 3})
    if (small < T) distances.push_back(small);
  for (int64_t power = 4; power < T; power *= 2) {
    distances.push_back(power);
    if (power + power / 2 < T) distances.push_back(power + power / 2);
  }
  return distances;
}

void DistanceSums::Add(const DistanceSums& other) {
  pairs += other.pairs;
  same_cell += other.same_cell;
  kernel += other.kernel;
  level += other.level;
  defined += other.defined;
  normalised += other.normalised;
}

std::vector<DistanceSums> DistanceProfile(const at::Tensor& rows, const at::Tensor& query,
                                          const at::Tensor& key, double scale, int64_t T,
                                          int64_t step, const std::vector<int64_t>& distances) {
  const at::Tensor cells = at::arange(T, at::kLong).floor_divide(step);
  const at::Tensor q = Repeated(at::matmul(rows, query), T, step) * scale;
  const at::Tensor k = Repeated(at::matmul(rows, key), T, step);
  const at::Tensor own = (q * k).sum(1);
  const double mean = Item((q.mean(0) * k.mean(0)).sum());
  std::vector<DistanceSums> result;
  for (const int64_t distance : distances) {
    const int64_t pairs = T - distance;
    const auto late = [&](const at::Tensor& x) { return x.slice(0, distance); };
    const auto early = [&](const at::Tensor& x) { return x.slice(0, 0, pairs); };
    const at::Tensor kernel = ((late(q) * early(k)).sum(1) + (early(q) * late(k)).sum(1)) / 2;
    const at::Tensor product = late(own) * early(own);
    const at::Tensor defined = product > 0;
    const at::Tensor normalised =
        at::where(defined, kernel / at::where(defined, product, 1.0).sqrt(), 0.0);
    result.push_back(
        {.pairs = static_cast<double>(pairs),
         .same_cell = static_cast<double>((late(cells) == early(cells)).sum().item<int64_t>()),
         .kernel = Item(kernel.sum()),
         .level = static_cast<double>(pairs) * mean,
         .defined = static_cast<double>(defined.sum().item<int64_t>()),
         .normalised = Item(normalised.sum())});
  }
  return result;
}

}  // namespace hkt::analysis
