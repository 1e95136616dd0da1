#include "hkt/train/fusion.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>

#include <cstring>
#include <map>
#include <vector>

namespace hkt::train {
namespace {

using Json = nlohmann::ordered_json;

bool IsLevels(std::string_view name) { return name.ends_with("level_logits"); }
bool IsGates(std::string_view name) { return name.ends_with("gate_logits"); }

// Mean, least and largest over the heads of [H, L], of every level.
Json OverHeads(const at::Tensor& shares) {
  const auto numbers = [](const at::Tensor& x) {
    const at::Tensor plain = x.contiguous();
    return std::vector<double>(plain.const_data_ptr<double>(),
                               plain.const_data_ptr<double>() + plain.numel());
  };
  return {{"mean", numbers(shares.mean(0))},
          {"min", numbers(shares.amin(0))},
          {"max", numbers(shares.amax(0))}};
}

}  // namespace

Json DescribeFusion(const NamedTensors& parameters) {
  Json lambda = Json::array(), gate = Json::array();
  for (const auto& [name, logits] : parameters) {
    const bool levels = IsLevels(name);
    if ((!levels && !IsGates(name)) || logits.dim() != 2 || logits.numel() == 0) continue;
    if (levels && logits.size(1) == 1) continue;
    const at::Tensor exact = logits.detach().to(at::kCPU, at::kDouble);
    if (levels) {
      lambda.push_back(OverHeads(at::softmax(exact, 1)));
    } else {
      gate.push_back(OverHeads(at::sigmoid(exact)));
    }
  }
  Json json = Json::object();
  if (!lambda.empty()) json["lambda"] = lambda;
  if (!gate.empty()) json["gate"] = gate;
  return json;
}

NamedTensors FusionLogits(const io::SafetensorsFile& file) {
  // By layer: "blocks.10" comes behind "blocks.9", which the order of names does not give.
  std::map<std::pair<size_t, std::string>, at::Tensor> found;
  for (const auto& [name, view] : file.tensors()) {
    if ((!IsLevels(name) && !IsGates(name)) || view.dtype != io::Dtype::kF32) continue;
    at::Tensor tensor = at::empty(view.shape, at::kFloat);
    if (!view.data.empty())
      std::memcpy(tensor.mutable_data_ptr(), view.data.data(), view.data.size());
    found[{name.size(), name}] = tensor;
  }
  NamedTensors logits;
  for (const auto& [key, tensor] : found) logits.emplace_back(key.second, tensor);
  return logits;
}

}  // namespace hkt::train
