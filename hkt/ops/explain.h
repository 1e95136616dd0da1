#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace hkt::ops {

// Whether HKT_EXPLAIN=1 asks which path a call takes. Read once.
bool Explaining();

// Says on stderr, the first time this process meets the line: "hkt: <op>: <path>, as <why>: <what
// was asked for>". What was asked for leaves out B and T: a run of many lengths says one line.
void Explain(const std::string& op, const std::string& path, const std::string& why,
             const std::string& request);

// "float32 on cpu, L=3 s=2 H=4 Hkv=2 D=16 Dv=16 causal lengths"
std::string DescribeAttention(at::TensorList queries, const at::Tensor& value, int64_t stride,
                              bool causal, bool padded);

// "bfloat16 on cpu, weights float32, d=64 k=3 s=2"
std::string DescribeDownsample(const at::Tensor& x, const at::Tensor& depthwise_weight,
                               int64_t stride);

// Why a call of this type on the CPU takes no fused kernel.
std::string WhyNoKernel(at::ScalarType type);

// "float32"
std::string TypeName(at::ScalarType type);

}  // namespace hkt::ops
