// One layer on random vectors, then a classifier on random ids: forward, backward and one step of
// AdamW. It includes narrow headers: torch/torch.h alone takes half a minute to compile.

#include <ATen/core/Tensor.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <torch/optim/adamw.h>

#include <cstdint>
#include <iostream>
#include <vector>

#include "hkt/base/config.h"
#include "hkt/nn/classifier.h"
#include "hkt/nn/hkt_attention.h"

int main() {
  // A layer for a model of your own: 3 levels, stride 2, gates.
  hkt::nn::HktAttention layer(hkt::nn::HktAttentionOptions{.d_model = 64, .heads = 2});
  std::vector<int64_t> valid = {100, 37};  // tokens of each sequence, padding on the right
  at::Tensor lengths = at::from_blob(valid.data(), {2}, at::kLong);
  at::Tensor y = layer->forward(at::randn({2, 100, 64}), lengths);  // [B, T, d]
  std::cout << "layer       " << y.sizes() << '\n';

  // The classifier that `hkt train` trains, from the same configuration.
  hkt::Config config;
  config.model.layers = 2;
  hkt::Resolve(config);  // checks it, fills in what the model name decides
  hkt::nn::Classifier model(hkt::nn::MakeClassifierOptions(config.model, /*vocabulary=*/257,
                                                           /*seq_len=*/128,
                                                           /*classes=*/2));
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(1e-3));
  at::Tensor ids = at::randint(1, 257, {8, 128}, at::kLong);
  at::Tensor labels = at::randint(0, 2, {8}, at::kLong);
  at::Tensor logits = model->forward(ids);
  at::Tensor loss = at::cross_entropy_loss(logits, labels);
  loss.backward();
  optimizer.step();
  std::cout << "logits      " << logits.sizes() << '\n'
            << "parameters  " << hkt::nn::ParameterCount(model->options()) << '\n'
            << "loss        " << loss.item<float>() << '\n';
  return 0;
}
