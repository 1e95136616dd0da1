#include "hkt/ops/explain.h"

#include <iostream>
#include <mutex>
#include <set>

#include "hkt/base/environment.h"
#include "hkt/base/error.h"
#include "hkt/ops/path.h"

namespace hkt::ops {

bool Explaining() {
  static const bool on = EnvironmentSwitch("HKT_EXPLAIN", false);
  return on;
}

void Explain(const std::string& op, const std::string& path, const std::string& why,
             const std::string& request) {
  // Never destroyed: threads may speak while the process ends.
  static std::mutex* const mutex = new std::mutex;
  static std::set<std::string>* const said = new std::set<std::string>;
  const std::string line = Concat("hkt: ", op, ": ", path, ", as ", why, ": ", request);
  std::lock_guard lock(*mutex);
  if (said->insert(line).second) std::cerr << line + '\n' << std::flush;
}

std::string TypeName(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kBFloat16:
      return "bfloat16";
    case at::kHalf:
      return "float16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    default:
      return c10::toString(type);
  }
}

std::string DescribeAttention(at::TensorList queries, const at::Tensor& value, int64_t stride,
                              bool causal, bool padded) {
  return Concat(TypeName(value.scalar_type()), " on ", value.device().str(), ", L=", queries.size(),
                " s=", stride, " H=", queries[0].size(1), " Hkv=", value.size(1),
                " D=", queries[0].size(3), " Dv=", value.size(3),
                causal ? " causal" : " bidirectional", padded ? " lengths" : "");
}

std::string DescribeDownsample(const at::Tensor& x, const at::Tensor& depthwise_weight,
                               int64_t stride) {
  return Concat(TypeName(x.scalar_type()), " on ", x.device().str(), ", weights ",
                TypeName(depthwise_weight.scalar_type()), ", d=", x.size(2),
                " k=", depthwise_weight.size(2), " s=", stride);
}

std::string WhyNoKernel(at::ScalarType type) {
  return FusedKernels() ? TypeName(type) + " has no kernel of hkt"
                        : "hkt's kernels are switched off";
}

}  // namespace hkt::ops
