// What one layer can be told to compute, by parameters that are written down (docs/theory.md, 2.6
// and 4): standard attention, a causal convolution, and three functions that need more than these.

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "hkt/nn/constructions.h"
#include "hkt/nn/hkt_attention.h"

namespace {

// Symbols a, b, c = 0, 1, 2 as unit vectors [1, T, 4].
at::Tensor Symbols(const std::vector<int64_t>& symbols) {
  return at::eye(4, at::kDouble).index_select(0, at::tensor(symbols, at::kLong)).unsqueeze(0);
}

// A layer of three levels and one with its weights of level 0 only, without gates.
void Reductions() {
  hkt::nn::HktAttention layer(hkt::nn::HktAttentionOptions{.d_model = 16, .heads = 2});
  hkt::nn::HktAttention attention(hkt::nn::HktAttentionOptions{
      .d_model = 16, .heads = 2, .kv_heads = 2, .levels = 1, .hybrid = false});
  for (auto& item : attention->named_parameters()) {
    const at::Tensor from = layer->named_parameters()[item.key()].detach();
    item.value().copy_(item.key() == "level_logits" ? from.narrow(1, 0, 1) : from);
  }
  const at::Tensor x = at::randn({1, 30, 16}), y = x.clone();
  y.select(1, 5).add_(1);  // token 5 changes
  const auto difference = [](const at::Tensor& a, const at::Tensor& b) {
    return (a - b).abs().max().item<double>();
  };
  hkt::nn::KeepLevelZero(layer);
  hkt::nn::OpenGates(layer);
  std::printf("open gates, level 0:  %.0e from standard attention\n",
              difference(layer(x), attention(x)));
  hkt::nn::ShutGates(layer);
  const at::Tensor change = layer(y) - layer(x);
  std::printf(
      "shut gates, level 0:  token 5 reaches outputs 5 to 7 by %.2f and later ones by %.0e\n",
      change.slice(1, 5, 8).abs().max().item<double>(),
      change.slice(1, 8).abs().max().item<double>());
}

// A gate at 1/2: attention supplies the mean, the convolution takes the token off.
void MixedHead() {
  hkt::nn::HktAttention layer = hkt::nn::DeviationFromRunningMean(1);
  const at::Tensor x = at::tensor({3.0, -3.0, 3.0, 5.0}, at::kDouble).view({1, 4, 1});
  const at::Tensor out = layer(x);
  std::printf("(running mean - x)/2 of 3 -3 3 5:");
  for (int64_t i = 0; i < 4; ++i) std::printf("  %.3f", out[0][i][0].item<double>());
  std::printf("\n");
}

// Two levels see what one cannot without positions: the order of earlier tokens, and a direction
// that depends on the distance.
void TwoLevels() {
  hkt::nn::HktAttention order = hkt::nn::OrderOfEarlierTokens();
  std::printf("order:  a c b -> %.4f (4/9),  c a b -> %.4f (1/3)\n",
              order(Symbols({0, 2, 1}))[0][2][0].item<double>(),
              order(Symbols({2, 0, 1}))[0][2][0].item<double>());
  hkt::nn::HktAttention direction = hkt::nn::TwoScaleDirection();
  // S_q0 of the token at q: its score with itself is 0, and its output is its row of the attention.
  const auto score = [&](const std::vector<int64_t>& symbols, size_t q) {
    const at::Tensor row = direction(Symbols(symbols))[0][static_cast<int64_t>(q)];
    return std::log((row[symbols[0]] / row[symbols[q]]).item<double>());
  };
  std::printf("direction of a before b:  near %+.3f,  far %+.3f\n",
              score({0, 1, 2}, 1) - score({1, 0, 2}, 1), score({0, 2, 1}, 2) - score({1, 2, 0}, 2));
}

}  // namespace

int main() {
  const at::NoGradGuard no_grad;
  Reductions();
  MixedHead();
  TwoLevels();
  return 0;
}
