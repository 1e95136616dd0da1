#include "hkt/nn/constructions.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linalg_inv.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <string>

#include "hkt/base/error.h"

namespace hkt::nn {
namespace {

constexpr double kSaturated = 40;    // 1 + exp(-40) rounds to 1
constexpr double kNoWeight = -200;   // exp(-200) is 1e-87
constexpr int64_t kSymbolWidth = 4;  // of the two layers on symbols

at::Tensor Parameter(HktAttention& layer, const std::string& name) {
  const auto parameters = layer->named_parameters();
  const at::Tensor* found = parameters.find(name);
  Check(found != nullptr, "the layer has no parameter ", name);
  return found->detach();  // shares its memory
}

void Set(HktAttention& layer, const std::string& name, const at::Tensor& value) {
  Parameter(layer, name).copy_(value);
}

// In double, biases 0, norms 1, logits 0, W_V = W_O = I, W_K = I; convolutions read the last tap
// and map by I.
HktAttention Plain(const HktAttentionOptions& options) {
  HktAttention layer(options);
  layer->to(at::kDouble);
  layer->eval();
  const at::Tensor identity = at::eye(options.d_model, at::kDouble);
  for (const auto& item : layer->named_parameters()) {
    const std::string& name = item.key();
    const at::Tensor value = item.value().detach();
    value.zero_();
    if (name.ends_with("norm.weight")) value.fill_(1);
    if (name.ends_with("depthwise.weight")) value.select(2, options.kernel_size - 1).fill_(1);
    if (name.ends_with("pointwise.weight") || name.starts_with("key.") || name == "value.weight" ||
        name == "output.weight") {
      value.copy_(identity);
    }
  }
  return layer;
}

HktAttention OnSymbols() {
  return Plain({.d_model = kSymbolWidth, .heads = 1, .kv_heads = 1, .levels = 2, .hybrid = false});
}

// Row `v` of the result times column `w`: e_v e_w^T.
at::Tensor Unit(int64_t v, int64_t w) {
  at::Tensor unit = at::zeros({kSymbolWidth, kSymbolWidth}, at::kDouble);
  unit[v][w] = 1;
  return unit;
}

// Sets M^(l) = W_Q W_K^T / sqrt(D) by W_Q = sqrt(D) M; the file holds W_Q transposed.
void SetForm(HktAttention& layer, int64_t l, const at::Tensor& form) {
  Set(layer, Concat("query.", l, ".weight"), std::sqrt(1.0 * kSymbolWidth) * form.t());
}

// U^-1 F U^-T, rows of U the level-1 images of the symbols: the form that is F between them.
at::Tensor BetweenImages(const at::Tensor& form) {
  const at::Tensor symbols = at::eye(kSymbolWidth, at::kDouble);
  const at::Tensor inverse = at::linalg_inv(
      at::gelu(at::layer_norm(symbols, {kSymbolWidth}, std::nullopt, std::nullopt, 1e-5)));
  return at::mm(at::mm(inverse, form), inverse.t());
}

void FillGates(HktAttention& layer, double logit) {
  const at::NoGradGuard no_grad;
  if (layer->options().hybrid) Parameter(layer, "gate_logits").fill_(logit);
}

}  // namespace

void OpenGates(HktAttention& layer) { FillGates(layer, kSaturated); }

void ShutGates(HktAttention& layer) { FillGates(layer, -kSaturated); }

void KeepLevelZero(HktAttention& layer) {
  const at::NoGradGuard no_grad;
  const at::Tensor logits = Parameter(layer, "level_logits");
  logits.fill_(kNoWeight);
  logits.select(1, 0).fill_(0);
}

void DropLastLevel(HktAttention& layer) {
  CheckUsage(layer->options().levels >= 2, "levels is ", layer->options().levels,
             ", must be at least 2 for one to be dropped");
  const at::NoGradGuard no_grad;
  const at::Tensor logits = Parameter(layer, "level_logits");
  const at::Tensor rest = logits.narrow(1, 0, logits.size(1) - 1);
  logits.select(1, logits.size(1) - 1).copy_(rest.amin(1) + kNoWeight);
}

HktAttention DeviationFromRunningMean(int64_t width) {
  const at::NoGradGuard no_grad;
  HktAttention layer = Plain({.d_model = width, .heads = 1, .kv_heads = 1, .levels = 1});
  Set(layer, "conv.0.pointwise.weight", -at::eye(width, at::kDouble));
  return layer;  // gate logit 0 is beta = 1/2, W_Q = 0 attends to all tokens alike
}

HktAttention TwoScaleDirection() {
  const at::NoGradGuard no_grad;
  HktAttention layer = OnSymbols();
  const at::Tensor turn = Unit(1, 0) - Unit(0, 1);
  SetForm(layer, 0, turn);
  SetForm(layer, 1, -2 * BetweenImages(turn));
  return layer;
}

HktAttention OrderOfEarlierTokens() {
  const at::NoGradGuard no_grad;
  HktAttention layer = OnSymbols();
  SetForm(layer, 1, 2 * std::log(4.0) * BetweenImages(Unit(1, 0)));
  Set(layer, "value.weight", Unit(0, 0));
  return layer;
}

}  // namespace hkt::nn
