// The schemas of every operator, in one place. Their kernels are registered beside their code: CPU
// (*_cpu.cc, depthwise_conv.cc, dropout.cc), Meta (meta.cc), Autograd (autograd.cc), autocast
// (autocast.cc), and composites of PyTorch's own operators for every other device and type
// (*_composite.cc).

#include <torch/library.h>

TORCH_LIBRARY(hkt, m) {
  m.def(
      "attention(Tensor[] queries, Tensor[] keys, Tensor value, int stride, float? scale=None, "
      "bool causal=True, Tensor? lengths=None) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "attention_forward(Tensor[] queries, Tensor[] keys, Tensor value, int stride, "
      "float? scale=None, bool causal=True, Tensor? lengths=None) -> (Tensor out, Tensor lse)",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "attention_backward(Tensor d_out, Tensor[] queries, Tensor[] keys, Tensor value, Tensor out, "
      "Tensor lse, int stride, float? scale, bool causal, Tensor? lengths) -> Tensor[]",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "downsample(Tensor x, Tensor depthwise_weight, Tensor depthwise_bias, "
      "Tensor pointwise_weight, Tensor pointwise_bias, Tensor norm_weight, Tensor norm_bias, "
      "int stride, float eps=1e-5) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def(
      "downsample_backward(Tensor d_out, Tensor x, Tensor depthwise_weight, Tensor depthwise_bias, "
      "Tensor pointwise_weight, Tensor pointwise_bias, Tensor norm_weight, Tensor norm_bias, "
      "int stride, float eps=1e-5) -> Tensor[]",
      {at::Tag::pt2_compliant_tag});
  m.def("depthwise_conv(Tensor x, Tensor weight, Tensor bias, int stride=1) -> Tensor",
        {at::Tag::pt2_compliant_tag});
  m.def("depthwise_conv_backward(Tensor d_out, Tensor x, Tensor weight, int stride=1) -> Tensor[]",
        {at::Tag::pt2_compliant_tag});
  m.def("dropout(Tensor x, Tensor seed, float p) -> Tensor", {at::Tag::pt2_compliant_tag});
  m.def(
      "multiscale_attention(Tensor[] queries, Tensor[] keys, Tensor value, Tensor level_logits, "
      "Tensor? gate_logits, Tensor[] branches, int stride, float? scale, float score_gain, "
      "bool causal, Tensor? lengths) -> Tensor",
      {at::Tag::pt2_compliant_tag});
  m.def("checksum(Tensor[] pieces) -> str");  // of files, no mathematics
  m.def("describe() -> Dict(str, str)");      // what this library is; no tensors
}
