#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "hkt/data/loader.h"

// The one place where data meet LibTorch. Header only, so that hkt_data itself links no torch.

namespace hkt::data {

struct TensorBatch {
  at::Tensor ids;                     // int64 [B, T], or [B, T, channels] of several channels
  at::Tensor labels;                  // int64 [B]
  std::optional<at::Tensor> lengths;  // int64 [B]; absent when nothing is padded
  std::vector<int64_t> indices;       // positions in the Dataset
};

// Takes over the batch's memory, without a copy.
inline TensorBatch ToTensors(Batch&& batch) {
  const auto wrap = [](std::vector<int64_t>&& values, at::IntArrayRef shape) {
    auto owner = std::make_shared<std::vector<int64_t>>(std::move(values));
    void* memory = owner->data();
    return at::from_blob(
        memory, shape, [owner](void*) {}, at::TensorOptions(at::kLong));
  };
  bool padded = false;
  for (int64_t length : batch.lengths) padded |= length < batch.T;
  TensorBatch result;
  result.ids = batch.channels == 1 ? wrap(std::move(batch.ids), {batch.B, batch.T})
                                   : wrap(std::move(batch.ids), {batch.B, batch.T, batch.channels});
  result.labels = wrap(std::move(batch.labels), {batch.B});
  if (padded) result.lengths = wrap(std::move(batch.lengths), {batch.B});
  result.indices = std::move(batch.indices);
  return result;
}

}  // namespace hkt::data
