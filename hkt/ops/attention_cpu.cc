// hkt::attention_forward and hkt::attention_backward on the CPU: the fused kernels of hkt/kernels
// for float32, bfloat16 and float16; the composite for float64.

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>

#include "hkt/base/error.h"
#include "hkt/kernels/attention.h"
#include "hkt/kernels/targets.h"
#include "hkt/ops/attention_composite.h"
#include "hkt/ops/checks.h"
#include "hkt/ops/explain.h"
#include "hkt/ops/kernel_operands.h"
#include "hkt/ops/parallel.h"

namespace hkt::ops {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

// Parameters and what they point to.
class Call {
 public:
  Call(at::TensorList queries, at::TensorList keys, const at::Tensor& value, int64_t stride,
       std::optional<double> scale, bool causal, const OptionalTensor& lengths) {
    for (const at::Tensor& query : queries) queries_.push_back(ReadHeads(query));
    for (const at::Tensor& key : keys) keys_.push_back(ReadHeads(key));
    if (lengths && lengths->defined()) lengths_ = lengths->contiguous();
    const at::Tensor& q = queries[0];
    params_ = {.B = q.size(0),
               .H = q.size(1),
               .Hkv = value.size(1),
               .T = q.size(2),
               .D = q.size(3),
               .Dv = value.size(3),
               .L = static_cast<int>(queries.size()),
               .stride = stride,
               .scale = static_cast<float>(
                   scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(3))))),
               .causal = causal,
               .type = *KernelType(q.scalar_type()),
               .lengths = lengths_.defined() ? lengths_.const_data_ptr<int64_t>() : nullptr,
               .queries = queries_.data(),
               .keys = keys_.data(),
               .value = ReadHeads(value)};
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const kernels::AttentionParams& params() const { return params_; }

  // Floating-point operations, for `scores` and `values` products of the size of Q K^T and P V.
  double Flops(double scores, double values) const {
    double share = 0, cell = 1;
    for (int l = 0; l < params_.L; ++l, cell /= static_cast<double>(params_.stride))
      share += cell * cell;
    const double pairs = static_cast<double>(params_.B * params_.H) *
                         static_cast<double>(params_.T) * static_cast<double>(params_.T);
    return (params_.causal ? 1 : 2) * pairs *
           (scores * share * static_cast<double>(params_.D) +
            values * static_cast<double>(params_.Dv));
  }

 private:
  std::vector<kernels::Input> queries_, keys_;
  at::Tensor lengths_;
  kernels::AttentionParams params_;
};

// [B, H, T, D], laid out as [B, T, H, D] memory.
at::Tensor EmptyRows(const at::Tensor& like, int64_t H, int64_t D) {
  return at::empty({like.size(0), like.size(2), H, D}, like.options()).transpose(1, 2);
}

void ExplainFused(const char* op, at::TensorList queries, const at::Tensor& value, int64_t stride,
                  bool causal, const OptionalTensor& lengths) {
  if (!Explaining()) return;
  Explain(op, Concat("fused ", kernels::ChosenTarget()),
          Concat(TypeName(value.scalar_type()), " on a CPU has a kernel"),
          DescribeAttention(queries, value, stride, causal, lengths && lengths->defined()));
}

std::tuple<at::Tensor, at::Tensor> AttentionForwardCpu(at::TensorList queries, at::TensorList keys,
                                                       const at::Tensor& value, int64_t stride,
                                                       std::optional<double> scale, bool causal,
                                                       const OptionalTensor& lengths) {
  CheckAttention(queries, keys, value, stride, lengths);
  if (!KernelType(value.scalar_type()))
    return AttentionForwardComposite(queries, keys, value, stride, scale, causal, lengths);
  ExplainFused("attention_forward", queries, value, stride, causal, lengths);
  const Call call(queries, keys, value, stride, scale, causal, lengths);
  const kernels::AttentionParams& p = call.params();
  at::Tensor out = EmptyRows(queries[0], p.H, p.Dv);
  at::Tensor lse = at::empty({p.B, p.H, p.T}, value.options().dtype(at::kFloat));
  kernels::AttentionForward(p, WriteHeads(out), lse.mutable_data_ptr<float>(),
                            PoolFor(call.Flops(1, 1)));
  return {out, lse};
}

std::vector<at::Tensor> AttentionBackwardCpu(const at::Tensor& d_out, at::TensorList queries,
                                             at::TensorList keys, const at::Tensor& value,
                                             const at::Tensor& out, const at::Tensor& lse,
                                             int64_t stride, std::optional<double> scale,
                                             bool causal, const OptionalTensor& lengths) {
  CheckAttentionBackward(d_out, queries, keys, value, out, lse, stride, lengths);
  if (!KernelType(value.scalar_type())) {
    return AttentionBackwardComposite(d_out, queries, keys, value, out, lse, stride, scale, causal,
                                      lengths);
  }
  ExplainFused("attention_backward", queries, value, stride, causal, lengths);
  const Call call(queries, keys, value, stride, scale, causal, lengths);
  std::vector<at::Tensor> gradients;
  std::vector<kernels::Output> outputs;
  const auto add = [&](const at::Tensor& input) {
    gradients.push_back(EmptyRows(input, input.size(1), input.size(3)));
    outputs.push_back(WriteHeads(gradients.back()));
  };
  for (const at::Tensor& query : queries) add(query);
  for (const at::Tensor& key : keys) add(key);
  add(value);
  const size_t L = queries.size();
  const at::Tensor rows = lse.contiguous();
  kernels::AttentionBackward(
      call.params(), ReadHeads(out), rows.const_data_ptr<float>(), ReadHeads(d_out),
      {.queries = outputs.data(), .keys = outputs.data() + L, .value = outputs.back()},
      PoolFor(call.Flops(3, 2)));
  return gradients;
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, CPU, m) {
  m.impl("attention_forward", AttentionForwardCpu);
  m.impl("attention_backward", AttentionBackwardCpu);
}

}  // namespace hkt::ops
