#include "hkt/nn/cost.h"

namespace hkt::nn {

AttentionCost AttentionMultiplyAdds(const HktAttentionOptions& a, int64_t length) {
  const auto d = static_cast<double>(a.d_model), T = static_cast<double>(length);
  const double kv_width = d / static_cast<double>(a.heads) * static_cast<double>(a.kv_heads);
  const double convolution = static_cast<double>(a.kernel_size) * d + d * d;
  const auto pairs = [&](double n) { return a.causal ? n * (n + 1) / 2 : n * n; };
  AttentionCost cost{.projections = T * d * (d + kv_width), .values = pairs(T) * d};
  int64_t level_length = length;
  for (int64_t l = 0; l < a.levels; ++l) {
    const auto T_l = static_cast<double>(level_length);
    cost.projections += T_l * d * (a.psd ? d : d + kv_width);
    cost.scores += pairs(T_l) * d;
    if (l > 0 && a.downsampling == Downsampling::kConvolution) cost.downsample += T_l * convolution;
    if (a.hybrid) cost.branches += T_l * convolution;
    if (a.undecimated) continue;
    level_length =
        (level_length + a.stride - 1) / a.stride;  // ceil(ceil(T / s) / s) = ceil(T / s^2)
  }
  return cost;
}

double ForwardMultiplyAdds(const ClassifierOptions& o, int64_t length) {
  const auto d = static_cast<double>(o.attention.d_model);
  const double feed_forward = 2 * static_cast<double>(length) * d * static_cast<double>(o.d_ff);
  return static_cast<double>(o.layers) *
             (AttentionMultiplyAdds(o.attention, length).total() + feed_forward) +
         d * static_cast<double>(o.classes);
}

}  // namespace hkt::nn
