#include "hkt/ops/checks.h"

#include <ATen/autocast_mode.h>
#include <c10/util/Exception.h>

#include <string>

#include "hkt/base/error.h"
#include "hkt/kernels/attention.h"
#include "hkt/ops/explain.h"

namespace hkt::ops {
namespace {

// Far above any T, and far from the end of int64.
constexpr int64_t kMostStride = int64_t{1} << 40;

std::string Level(const char* name, size_t level) { return Concat(name, "[", level, "]"); }

void CheckFloating(const at::Tensor& tensor, const std::string& name) {
  TORCH_CHECK_TYPE(at::isFloatingType(tensor.scalar_type()), name, " is of type ",
                   TypeName(tensor.scalar_type()),
                   "; it must be float32, float64, bfloat16 or float16");
}

void CheckDevice(const at::Tensor& tensor, const std::string& name, const at::Tensor& like,
                 const char* like_name) {
  TORCH_CHECK_VALUE(tensor.device() == like.device(), name, " is on ", tensor.device(),
                    "; it must be on the device of ", like_name, ", ", like.device());
}

// Same type and device as `like`, whose name is `like_name`.
void CheckLike(const at::Tensor& tensor, const std::string& name, const at::Tensor& like,
               const char* like_name, Types types = Types::kEqual) {
  CheckFloating(tensor, name);
  TORCH_CHECK_TYPE(tensor.scalar_type() == like.scalar_type() ||
                       (types == Types::kAnyUnderAutocast &&
                        at::autocast::is_autocast_enabled(tensor.device().type())),
                   name, " is of type ", TypeName(tensor.scalar_type()), "; it must be that of ",
                   like_name, ", ", TypeName(like.scalar_type()));
  CheckDevice(tensor, name, like, like_name);
}

void CheckRank(const at::Tensor& tensor, const std::string& name, int64_t rank, const char* shape) {
  TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, name, " is of layout ", tensor.layout(),
                    "; it must be dense, ", shape);
  TORCH_CHECK_VALUE(tensor.dim() == rank, name, " has ", tensor.dim(), " dimensions; it must be ",
                    shape);
}

void CheckSize(const at::Tensor& tensor, const std::string& name, int64_t dim,
               const c10::SymInt& size, const char* meaning) {
  // expect_true: a symbolic size becomes a guard of the compiled graph, not a constant.
  TORCH_CHECK_VALUE(tensor.sym_size(dim).sym_eq(size).expect_true(__FILE__, __LINE__), name,
                    " has size ", tensor.sym_size(dim), " in dimension ", dim, "; it must be ",
                    meaning, " = ", size);
}

// A weight of hkt::downsample is of x's type, or float32: what autocast leaves beside a 16-bit x.
void CheckWeight(const at::Tensor& tensor, const std::string& name, const at::Tensor& x) {
  CheckFloating(tensor, name);
  TORCH_CHECK_TYPE(tensor.scalar_type() == x.scalar_type() ||
                       (tensor.scalar_type() == at::kFloat && x.scalar_type() != at::kDouble),
                   name, " is of type ", TypeName(tensor.scalar_type()), "; it must be that of x, ",
                   TypeName(x.scalar_type()), x.scalar_type() == at::kDouble ? "" : ", or float32");
  CheckDevice(tensor, name, x, "x");
}

void CheckVector(const at::Tensor& tensor, const std::string& name, const c10::SymInt& size,
                 const at::Tensor& x) {
  CheckRank(tensor, name, 1, "[d]");
  CheckSize(tensor, name, 0, size, "d");
  CheckWeight(tensor, name, x);
}

// Values can be read where they lie in this process's memory; on other devices, while tracing and
// under torch.func the operator takes a length below 0 as 0 and one above T as T.
void CheckLengthValues(const at::Tensor& lengths, const c10::SymInt& T) {
  const c10::DispatchKeySet keys = lengths.key_set();
  const bool plain = lengths.is_cpu() && lengths.has_storage() && !keys.has_any(c10::python_ks) &&
                     !keys.has_any(c10::functorch_transforms_ks | c10::functorch_batched_ks) &&
                     !keys.has(c10::DispatchKey::Functionalize) && !T.is_symbolic();
  if (!plain) return;
  const int64_t n = lengths.size(0), step = lengths.stride(0), limit = T.expect_int();
  const int64_t* values = lengths.const_data_ptr<int64_t>();
  for (int64_t b = 0; b < n; ++b) {
    const int64_t length = values[b * step];
    TORCH_CHECK_VALUE(length >= 0 && length <= limit, "lengths[", b, "] is ", length,
                      "; it must be from 0 to T = ", limit);
  }
}

}  // namespace

void CheckAttention(at::TensorList queries, at::TensorList keys, const at::Tensor& value,
                    int64_t stride, const std::optional<at::Tensor>& lengths, Types types) {
  TORCH_CHECK_VALUE(!queries.empty(),
                    "queries is empty; it must hold one tensor a level, at least 1");
  TORCH_CHECK_VALUE(queries.size() <= kernels::kMaxLevels, "queries holds ", queries.size(),
                    " levels; it must hold at most ", kernels::kMaxLevels);
  TORCH_CHECK_VALUE(keys.size() == queries.size(), "keys holds ", keys.size(),
                    " levels; it must hold as many as queries, ", queries.size());
  TORCH_CHECK_VALUE(stride >= 2 && stride <= kMostStride, "stride is ", stride,
                    "; it must be from 2 to 2^40");
  const at::Tensor& q0 = queries[0];
  CheckRank(q0, "queries[0]", 4, "[B, H, T, D]");
  CheckRank(value, "value", 4, "[B, Hkv, T, Dv]");
  CheckFloating(q0, "queries[0]");
  CheckLike(value, "value", q0, "queries[0]", types);
  const c10::SymInt B = q0.sym_size(0), H = q0.sym_size(1), T = q0.sym_size(2), D = q0.sym_size(3);
  const c10::SymInt Hkv = value.sym_size(1);
  TORCH_CHECK_VALUE(D > 0, "queries[0] has head width D = 0; it must be at least 1");
  CheckSize(value, "value", 0, B, "B of queries[0]");
  CheckSize(value, "value", 2, T, "T of queries[0]");
  TORCH_CHECK_VALUE(Hkv == 0 ? H == 0 : H % Hkv == 0, "value has Hkv = ", Hkv, " heads; H = ", H,
                    " of queries[0] must be a multiple of it");
  c10::SymInt Tl = T;
  for (size_t l = 0; l < queries.size(); ++l) {
    const std::string q = Level("queries", l), k = Level("keys", l);
    CheckRank(queries[l], q, 4, "[B, H, T_l, D]");
    CheckRank(keys[l], k, 4, "[B, Hkv, T_l, D]");
    CheckLike(queries[l], q, q0, "queries[0]", types);
    CheckLike(keys[l], k, q0, "queries[0]", types);
    for (const at::Tensor* tensor : {&queries[l], &keys[l]}) {
      const bool query = tensor == &queries[l];
      const std::string& name = query ? q : k;
      CheckSize(*tensor, name, 0, B, "B of queries[0]");
      CheckSize(*tensor, name, 1, query ? H : Hkv, query ? "H of queries[0]" : "Hkv of value");
      CheckSize(*tensor, name, 2, Tl, "T_l = ceil(T_{l-1} / stride)");
      CheckSize(*tensor, name, 3, D, "D of queries[0]");
    }
    Tl = (Tl + (stride - 1)) / stride;
  }
  if (!lengths || !lengths->defined()) return;
  CheckRank(*lengths, "lengths", 1, "[B]");
  CheckSize(*lengths, "lengths", 0, B, "B of queries[0]");
  TORCH_CHECK_TYPE(lengths->scalar_type() == at::kLong, "lengths is of type ",
                   TypeName(lengths->scalar_type()), "; it must be int64");
  CheckDevice(*lengths, "lengths", q0, "queries[0]");
  CheckLengthValues(*lengths, T);
}

void CheckAttentionBackward(const at::Tensor& d_out, at::TensorList queries, at::TensorList keys,
                            const at::Tensor& value, const at::Tensor& out, const at::Tensor& lse,
                            int64_t stride, const std::optional<at::Tensor>& lengths) {
  CheckAttention(queries, keys, value, stride, lengths);
  const at::Tensor& q0 = queries[0];
  for (const at::Tensor* tensor : {&d_out, &out}) {
    const char* name = tensor == &d_out ? "d_out" : "out";
    CheckRank(*tensor, name, 4, "[B, H, T, Dv]");
    CheckLike(*tensor, name, q0, "queries[0]");
    CheckSize(*tensor, name, 3, value.sym_size(3), "Dv of value");
  }
  CheckRank(lse, "lse", 3, "[B, H, T]");
  CheckDevice(lse, "lse", q0, "queries[0]");
  const at::ScalarType type = ExactType(q0.scalar_type());
  TORCH_CHECK_TYPE(lse.scalar_type() == type, "lse is of type ", TypeName(lse.scalar_type()),
                   "; it must be ", TypeName(type));
  for (const at::Tensor* tensor : {&d_out, &out, &lse}) {
    const char* name = tensor == &d_out ? "d_out" : tensor == &out ? "out" : "lse";
    CheckSize(*tensor, name, 0, q0.sym_size(0), "B of queries[0]");
    CheckSize(*tensor, name, 1, q0.sym_size(1), "H of queries[0]");
    CheckSize(*tensor, name, 2, q0.sym_size(2), "T of queries[0]");
  }
}

at::ScalarType ExactType(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

namespace {

void CheckRows(const at::Tensor& x, int64_t stride) {
  TORCH_CHECK_VALUE(stride >= 1 && stride <= kMostStride, "stride is ", stride,
                    "; it must be from 1 to 2^40");
  CheckRank(x, "x", 3, "[B, T, d]");
  CheckFloating(x, "x");
  TORCH_CHECK_VALUE(x.sym_size(2) > 0, "x has width d = 0; it must be at least 1");
}

void CheckGradientRows(const at::Tensor& d_out, const at::Tensor& x, int64_t stride) {
  CheckRank(d_out, "d_out", 3, "[B, T_l, d]");
  CheckLike(d_out, "d_out", x, "x");
  CheckSize(d_out, "d_out", 0, x.sym_size(0), "B of x");
  CheckSize(d_out, "d_out", 1, (x.sym_size(1) + (stride - 1)) / stride, "ceil(T / stride) of x");
  CheckSize(d_out, "d_out", 2, x.sym_size(2), "d of x");
}

void CheckDepthwiseWeight(const at::Tensor& weight, const std::string& name, const at::Tensor& x) {
  CheckRank(weight, name, 3, "[d, 1, k]");
  CheckSize(weight, name, 0, x.sym_size(2), "d of x");
  CheckSize(weight, name, 1, 1, "1, as the convolution is depthwise,");
  TORCH_CHECK_VALUE(weight.sym_size(2) > 0, name, " has kernel width 0; it must be at least 1");
  CheckWeight(weight, name, x);
}

}  // namespace

void CheckDownsample(const at::Tensor& x, const at::Tensor& depthwise_weight,
                     const at::Tensor& depthwise_bias, const at::Tensor& pointwise_weight,
                     const at::Tensor& pointwise_bias, const at::Tensor& norm_weight,
                     const at::Tensor& norm_bias, int64_t stride) {
  CheckRows(x, stride);
  const c10::SymInt d = x.sym_size(2);
  CheckDepthwiseWeight(depthwise_weight, "depthwise_weight", x);
  CheckVector(depthwise_bias, "depthwise_bias", d, x);
  CheckRank(pointwise_weight, "pointwise_weight", 2, "[d, d]");
  CheckSize(pointwise_weight, "pointwise_weight", 0, d, "d of x");
  CheckSize(pointwise_weight, "pointwise_weight", 1, d, "d of x");
  CheckWeight(pointwise_weight, "pointwise_weight", x);
  CheckVector(pointwise_bias, "pointwise_bias", d, x);
  CheckVector(norm_weight, "norm_weight", d, x);
  CheckVector(norm_bias, "norm_bias", d, x);
}

void CheckDownsampleBackward(const at::Tensor& d_out, const at::Tensor& x,
                             const at::Tensor& depthwise_weight, const at::Tensor& depthwise_bias,
                             const at::Tensor& pointwise_weight, const at::Tensor& pointwise_bias,
                             const at::Tensor& norm_weight, const at::Tensor& norm_bias,
                             int64_t stride) {
  CheckDownsample(x, depthwise_weight, depthwise_bias, pointwise_weight, pointwise_bias,
                  norm_weight, norm_bias, stride);
  CheckGradientRows(d_out, x, stride);
}

void CheckDepthwiseConv(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                        int64_t stride) {
  CheckRows(x, stride);
  CheckDepthwiseWeight(weight, "weight", x);
  CheckVector(bias, "bias", x.sym_size(2), x);
}

void CheckDepthwiseConvBackward(const at::Tensor& d_out, const at::Tensor& x,
                                const at::Tensor& weight, int64_t stride) {
  CheckRows(x, stride);
  CheckDepthwiseWeight(weight, "weight", x);
  CheckGradientRows(d_out, x, stride);
}

void CheckDropout(const at::Tensor& x, const at::Tensor& seed, double p) {
  CheckFloating(x, "x");
  TORCH_CHECK_VALUE(seed.defined() && seed.sym_numel() == 1, "seed has shape ", seed.sym_sizes(),
                    "; it must hold one number");
  TORCH_CHECK_TYPE(seed.scalar_type() == at::kLong, "seed is of type ",
                   TypeName(seed.scalar_type()), "; it must be int64");
  TORCH_CHECK_VALUE(p >= 0 && p <= 1, "p is ", p, "; it must be from 0 to 1");
}

void CheckMultiscale(at::TensorList queries, const at::Tensor& value,
                     const at::Tensor& level_logits, const std::optional<at::Tensor>& gate_logits,
                     at::TensorList branches) {
  const size_t L = queries.size();
  const at::Tensor& q0 = queries[0];
  const auto check_logits = [&](const at::Tensor& logits, const char* name) {
    CheckRank(logits, name, 2, "[H, L]");
    CheckFloating(logits, name);
    CheckSize(logits, name, 0, q0.sym_size(1), "H of queries[0]");
    CheckSize(logits, name, 1, static_cast<int64_t>(L), "L, the number of queries,");
    CheckDevice(logits, name, q0, "queries[0]");
  };
  check_logits(level_logits, "level_logits");
  if (!gate_logits || !gate_logits->defined()) {
    TORCH_CHECK_VALUE(branches.empty(), "branches holds ", branches.size(),
                      " tensors; it must be empty without gate_logits");
    return;
  }
  check_logits(*gate_logits, "gate_logits");
  TORCH_CHECK_VALUE(branches.size() == L, "branches holds ", branches.size(),
                    " tensors; with gate_logits it must hold one a level, ", L);
  for (size_t l = 0; l < L; ++l) {
    const std::string name = Level("branches", l);
    CheckRank(branches[l], name, 4, "[B, H, T_l, Dv]");
    CheckLike(branches[l], name, q0, "queries[0]", Types::kAnyUnderAutocast);
    CheckSize(branches[l], name, 0, q0.sym_size(0), "B of queries[0]");
    CheckSize(branches[l], name, 1, q0.sym_size(1), "H of queries[0]");
    CheckSize(branches[l], name, 2, queries[l].sym_size(2), "T_l of queries[l]");
    CheckSize(branches[l], name, 3, value.sym_size(3), "Dv of value");
  }
}

}  // namespace hkt::ops
