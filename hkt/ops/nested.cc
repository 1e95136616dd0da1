// Nested tensors are refused by name. Without this, PyTorch would ask them for sizes, which they do
// not have, and say that this is an error of its own.

#include <ATen/core/boxing/KernelFunction.h>
#include <c10/util/Exception.h>
#include <torch/library.h>

namespace hkt::ops {
namespace {

void RefuseNested(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_VALUE(false, op.schema().name(),
                    " got a nested tensor; its tensors must be dense: pad them "
                    "(torch.nested.to_padded_tensor) and give lengths");
}

void RefuseAll(torch::Library& m) {
  for (const char* name :
       {"attention", "attention_forward", "attention_backward", "downsample", "downsample_backward",
        "depthwise_conv", "depthwise_conv_backward", "dropout", "multiscale_attention"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&RefuseNested>());
  }
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, AutogradNestedTensor, m) { RefuseAll(m); }
TORCH_LIBRARY_IMPL(hkt, NestedTensorCPU, m) { RefuseAll(m); }
TORCH_LIBRARY_IMPL(hkt, NestedTensorCUDA, m) { RefuseAll(m); }

}  // namespace hkt::ops
