#include "hkt/train/fusion.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace hkt::train {
namespace {

using Json = nlohmann::ordered_json;

bool IsLevels(std::string_view name) { return name.ends_with("level_logits"); }
bool IsGates(std::string_view name) { return name.ends_with("gate_logits"); }

// [H, L] in double.
std::vector<std::vector<double>> Rows(const at::Tensor& logits) {
  const at::Tensor plain = logits.detach().to(at::kDouble).contiguous();
  std::vector<std::vector<double>> rows;
  const double* at = plain.const_data_ptr<double>();
  for (int64_t h = 0; h < plain.size(0); ++h, at += plain.size(1))
    rows.emplace_back(at, at + plain.size(1));
  return rows;
}

void Softmax(std::vector<double>& row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (double& x : row) sum += x = std::exp(x - largest);
  for (double& x : row) x /= sum;
}

void Sigmoid(std::vector<double>& row) {
  for (double& x : row) x = 1 / (1 + std::exp(-x));
}

// Mean, least and largest over the heads, of every level.
Json OverHeads(const std::vector<std::vector<double>>& rows) {
  std::vector<double> mean = rows.at(0), min = mean, max = mean;
  for (size_t h = 1; h < rows.size(); ++h) {
    for (size_t l = 0; l < mean.size(); ++l) {
      mean[l] += rows[h][l];
      min[l] = std::min(min[l], rows[h][l]);
      max[l] = std::max(max[l], rows[h][l]);
    }
  }
  for (double& x : mean) x /= static_cast<double>(rows.size());
  return {{"mean", mean}, {"min", min}, {"max", max}};
}

}  // namespace

Json DescribeFusion(const NamedTensors& parameters) {
  Json lambda = Json::array(), gate = Json::array();
  for (const auto& [name, logits] : parameters) {
    const bool levels = IsLevels(name);
    if ((!levels && !IsGates(name)) || logits.dim() != 2 || logits.numel() == 0) continue;
    if (levels && logits.size(1) == 1) continue;
    auto rows = Rows(logits);
    for (auto& row : rows) levels ? Softmax(row) : Sigmoid(row);
    (levels ? lambda : gate).push_back(OverHeads(rows));
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
