#include "hkt/nn/cost.h"

namespace hkt::nn {

double ForwardMultiplyAdds(const ClassifierOptions& o, int64_t length) {
  const HktAttentionOptions& a = o.attention;
  const auto d = static_cast<double>(a.d_model), T = static_cast<double>(length);
  const double kv_width = d / static_cast<double>(a.heads) * static_cast<double>(a.kv_heads);
  const double convolution = static_cast<double>(a.kernel_size) * d + d * d;
  const auto pairs = [&](double n) { return a.causal ? n * (n + 1) / 2 : n * n; };
  double layer = T * d * (d + kv_width) + pairs(T) * d + 2 * T * d * static_cast<double>(o.d_ff);
  int64_t level_length = length;
  for (int64_t l = 0; l < a.levels; ++l) {
    const auto T_l = static_cast<double>(level_length);
    layer += T_l * d * (a.psd ? d : d + kv_width) + pairs(T_l) * d;
    if (l > 0) layer += T_l * convolution;
    if (a.hybrid) layer += T_l * convolution;
    level_length =
        (level_length + a.stride - 1) / a.stride;  // ceil(ceil(T / s) / s) = ceil(T / s^2)
  }
  return static_cast<double>(o.layers) * layer + d * static_cast<double>(o.classes);
}

}  // namespace hkt::nn
