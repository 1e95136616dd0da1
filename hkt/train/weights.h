#pragma once

#include <ATen/core/Tensor.h>

#include <filesystem>
#include <string>

#include "hkt/io/safetensors.h"
#include "hkt/train/model.h"

namespace hkt::train {

// Tensors on their way into a file; holds what the views point at.
class TensorPack {
 public:
  // As <prefix><name>; any strides.
  void Add(const std::string& prefix, const NamedTensors& tensors);
  const io::TensorViews& views() const { return views_; }

 private:
  std::vector<at::Tensor> owners_;
  io::TensorViews views_;
};

// Fills every target from the file's tensor <prefix><name>, whatever floating type that has.
// Tensors of the file under the prefix that are no target, targets that the file lacks, and other
// shapes or kinds are one Error that lists them all; then no target was touched.
void CopyInto(const io::SafetensorsFile& file, const std::string& prefix,
              const NamedTensors& targets);

}  // namespace hkt::train
