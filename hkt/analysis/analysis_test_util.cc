#include "hkt/analysis/analysis_test_util.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include <cmath>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/train/model.h"

namespace hkt::analysis {
namespace {

// ctest runs programs side by side, and the shapes here are below what a second thread is worth.
class OneThread : public ::testing::Environment {
  void SetUp() override { at::set_num_threads(1); }
};
[[maybe_unused]] const auto* const kOneThread = ::testing::AddGlobalTestEnvironment(new OneThread);

}  // namespace

at::Tensor Normal(at::IntArrayRef shape, uint64_t seed) {
  Random random({seed, 77});
  at::Tensor x = at::empty(shape, at::kDouble);
  double* data = x.mutable_data_ptr<double>();
  for (int64_t i = 0; i < x.numel(); ++i) data[i] = random.Normal();
  return x;
}

ModelConfig LayerConfig(const LayerShape& shape) {
  ModelConfig config;
  config.d_model = shape.d;
  config.heads = shape.H;
  config.kv_heads = shape.H;
  config.levels = shape.L;
  config.stride = shape.stride;
  config.kernel_size = shape.kernel_size;
  config.hybrid = shape.hybrid;
  config.bias = shape.bias;
  config.psd = shape.psd;
  return config;
}

Layer RandomLayer(const LayerShape& shape, uint64_t seed) {
  const int64_t d = shape.d;
  const double root = std::sqrt(static_cast<double>(d));
  train::NamedTensors parameters;
  seed *= 1000;
  const auto add = [&](const std::string& name, at::IntArrayRef sizes, double deviation,
                       double mean = 0) {
    parameters.emplace_back(name, Normal(sizes, ++seed) * deviation + mean);
  };
  for (int64_t l = 0; l < shape.L; ++l) {
    for (const char* kind : {"query.", "key."}) {
      add(Concat(kind, l, ".weight"), {d, d}, 1 / root);
      if (shape.bias) add(Concat(kind, l, ".bias"), {d}, 0.5);
    }
    if (l == 0) continue;
    const std::string step = Concat("downsample.", l, ".");
    add(step + "depthwise.weight", {d, 1, shape.kernel_size},
        1 / std::sqrt(static_cast<double>(shape.kernel_size)));
    add(step + "depthwise.bias", {d}, 0.1);
    add(step + "pointwise.weight", {d, d}, 1 / root);
    add(step + "pointwise.bias", {d}, 0.1);
    add(step + "norm.weight", {d}, 0.1, 1);
    add(step + "norm.bias", {d}, 0.1);
  }
  add("level_logits", {shape.H, shape.L}, 1);
  add("gate_logits", {shape.H, shape.L}, 1);
  return ReadLayer(parameters, "", LayerConfig(shape));
}

at::Tensor LevelScores(const Layer& layer, int64_t l, const at::Tensor& x) {
  const Projections p = Project(layer, l, x);
  return at::matmul(p.query, p.key.transpose(1, 2)) * layer.scale;
}

at::Tensor CellMatrix(int64_t T, int64_t step) {
  const at::Tensor cells = at::arange(T, at::kLong).floor_divide(step);
  const at::Tensor columns = at::arange((T + step - 1) / step, at::kLong);
  return (cells.unsqueeze(1) == columns.unsqueeze(0)).to(at::kDouble);
}

double Trace(const at::Tensor& m) { return m.diagonal().sum().item<double>(); }
at::Tensor Symmetric(const at::Tensor& m) { return (m + m.t()) / 2; }
at::Tensor Skew(const at::Tensor& m) { return (m - m.t()) / 2; }

::testing::AssertionResult MeanWithin(const std::vector<double>& sample, double expected,
                                      double errors) {
  const auto n = static_cast<double>(sample.size());
  double mean = 0, square = 0;
  for (double x : sample) mean += x / n;
  for (double x : sample) square += (x - mean) * (x - mean) / n;
  const double error = std::sqrt(square / n);
  if (std::abs(mean - expected) <= errors * error) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "mean " << mean << " of " << sample.size()
                                       << ", standard error " << error << ", expected " << expected;
}

double Distance(const at::Tensor& a, const at::Tensor& b) {
  Check(a.sizes().equals(b.sizes()), "shapes ", a.sizes(), " and ", b.sizes());
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

}  // namespace hkt::analysis
