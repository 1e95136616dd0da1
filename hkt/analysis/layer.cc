#include "hkt/analysis/layer.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <cmath>

#include "hkt/base/error.h"
#include "hkt/ops/layout.h"

namespace hkt::analysis {
namespace {

class Reader {
 public:
  Reader(const train::NamedTensors& parameters, std::string prefix)
      : parameters_(parameters), prefix_(std::move(prefix)) {}

  at::Tensor operator()(const std::string& name) const {
    for (const auto& [key, value] : parameters_) {
      if (key == prefix_ + name) return value.detach().to(at::kCPU, at::kDouble).contiguous();
    }
    Fail("the model has no parameter ", prefix_, name, "; its config.json describes another model");
  }

  // [H', d', D] from weight [H' D, d] and, with bias, bias [H' D].
  at::Tensor Heads(const std::string& name, int64_t heads, bool bias) const {
    at::Tensor weight = (*this)(name + ".weight");
    if (bias) weight = at::cat({weight, (*this)(name + ".bias").unsqueeze(1)}, 1);
    return weight.unflatten(0, {heads, weight.size(0) / heads}).transpose(1, 2).contiguous();
  }

 private:
  const train::NamedTensors& parameters_;
  std::string prefix_;
};

void CheckHasForm(const Layer& layer) {
  Check(!layer.rotary, "rotary scores depend on the distance: there is no matrix M of a level");
}

// x [H, T_l, D]: the pair (2n, 2n + 1) at position tau turns by tau step 10000^(-2n/D).
at::Tensor Rotated(const at::Tensor& x, int64_t step) {
  const int64_t D = x.size(2);
  const at::Tensor rates =
      at::pow(10000.0, at::arange(0, D, 2, at::kDouble) / -static_cast<double>(D));
  const at::Tensor angles =
      at::outer(at::arange(x.size(1), at::kDouble) * static_cast<double>(step), rates);
  const at::Tensor even = x.slice(2, 0, D, 2), odd = x.slice(2, 1, D, 2);
  return at::stack(
             {even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()},
             3)
      .flatten(2);
}

}  // namespace

int64_t Layer::step(int64_t l) const {
  int64_t step = 1;
  for (int64_t i = 0; i < l; ++i) step = ops::NextStep(step, stride);
  return step;
}

Layer ReadLayer(const train::NamedTensors& parameters, const std::string& prefix,
                const ModelConfig& config) {
  CheckUsage(config.levels && config.hybrid && config.kv_heads,
             "the model configuration has no levels, hybrid or kv_heads: call hkt::Resolve first");
  const char* unlike = config.undecimated            ? "undecimated"
                       : config.downsample != "conv" ? "downsample pick"
                                                     : nullptr;
  CheckUsage(unlike == nullptr,
             "hkt analyze is about levels that a strided convolution makes; the "
             "run was trained with ",
             unlike != nullptr ? unlike : "");
  const at::NoGradGuard no_grad;
  const Reader read(parameters, prefix);
  Layer layer;
  layer.d = config.d_model;
  layer.H = config.heads;
  layer.D = config.d_model / config.heads;
  layer.L = *config.levels;
  layer.stride = config.stride;
  layer.hybrid = *config.hybrid;
  layer.psd = config.psd;
  layer.causal = !config.bidirectional;
  layer.bias = config.bias;
  layer.rotary = config.rotary;
  layer.scale = 1 / std::sqrt(static_cast<double>(layer.D));
  layer.score_gain = config.score_gain;
  const int64_t kv_heads = *config.kv_heads;
  for (int64_t l = 0; l < layer.L; ++l) {
    LevelWeights level;
    level.query = read.Heads(Concat("query.", l), layer.H, config.bias);
    level.key = config.psd ? level.query
                           : read.Heads(Concat("key.", l), kv_heads, config.bias)
                                 .repeat_interleave(layer.H / kv_heads, 0);
    if (l > 0) {
      const std::string step = Concat("downsample.", l, ".");
      level.depthwise_weight = read(step + "depthwise.weight").squeeze(1);
      level.depthwise_bias = read(step + "depthwise.bias");
      level.pointwise_weight = read(step + "pointwise.weight");
      level.pointwise_bias = read(step + "pointwise.bias");
      level.norm_weight = read(step + "norm.weight");
      level.norm_bias = read(step + "norm.bias");
    }
    layer.levels.push_back(std::move(level));
  }
  const at::Tensor level_logits = config.fusion == "uniform"
                                      ? at::zeros({layer.H, layer.L}, at::kDouble)
                                      : read("level_logits");
  const at::Tensor log_lambda = at::log_softmax(level_logits, 1);
  layer.lambda = log_lambda.exp();
  if (layer.hybrid) {
    const at::Tensor gates = read("gate_logits");
    layer.beta = at::sigmoid(gates);
    layer.weights = at::softmax(log_lambda + at::log_sigmoid(gates), 1);
  } else {
    layer.beta = at::ones_like(layer.lambda);
    layer.weights = layer.lambda;
  }
  return layer;
}

at::Tensor Augmented(const Layer& layer, const at::Tensor& x) {
  if (!layer.bias) return x;
  return at::cat({x, at::ones({x.size(0), 1}, x.options())}, 1);
}

at::Tensor ScoreForm(const Layer& layer, int64_t l, int64_t head) {
  CheckHasForm(layer);
  const LevelWeights& level = layer.levels.at(static_cast<size_t>(l));
  return at::matmul(level.query[head], level.key[head].t()) * layer.scale;
}

Projections Project(const Layer& layer, int64_t l, const at::Tensor& rows) {
  const LevelWeights& level = layer.levels.at(static_cast<size_t>(l));
  const at::Tensor x = Augmented(layer, rows);
  const at::Tensor query = at::matmul(x, level.query), key = at::matmul(x, level.key);
  if (!layer.rotary) return {query, key};
  return {Rotated(query, layer.step(l)), Rotated(key, layer.step(l))};
}

at::Tensor FusedScores(const Layer& layer, const std::vector<at::Tensor>& levels, int64_t begin,
                       int64_t end) {
  const int64_t T = levels.at(0).size(0);
  Check(0 <= begin && begin <= end && end <= T, "rows ", begin, " to ", end, " of ", T);
  const at::Tensor tokens = at::arange(T, at::kLong);
  at::Tensor fused;
  for (int64_t l = 0; l < layer.L; ++l) {
    const Projections p = Project(layer, l, levels.at(static_cast<size_t>(l)));
    const at::Tensor cells = tokens.floor_divide(layer.step(l));
    const at::Tensor weight = layer.weights.select(1, l).unsqueeze(1).unsqueeze(2);
    const at::Tensor queries = p.query.index_select(1, cells.slice(0, begin, end)) *
                               (weight * (layer.scale * layer.score_gain));
    const at::Tensor term = at::matmul(queries, p.key.transpose(1, 2)).index_select(2, cells);
    fused = l == 0 ? term : fused + term;
  }
  return fused;
}

}  // namespace hkt::analysis
