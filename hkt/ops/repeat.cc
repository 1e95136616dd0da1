#include "hkt/ops/repeat.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/slice.h>

namespace hkt::ops {

at::Tensor RepeatToFull(const at::Tensor& x, int64_t repeats, int64_t dim, const c10::SymInt& T) {
  if (repeats == 1) return x;
  c10::SymDimVector expanded(x.sym_sizes().begin(), x.sym_sizes().end());
  if (x.sym_size(dim) == 1) {  // one position under every token, however large s^l is
    expanded[dim] = T;
    return x.expand_symint(expanded);
  }
  if (T.is_symbolic()) {
    // While tracing. The cut below would make a guard, and two graphs, of whether T is a multiple.
    const at::Tensor token = at::arange(T, x.options().dtype(at::kLong));
    return x.index_select(dim, token.div(repeats, "floor"));
  }
  c10::SymDimVector merged = expanded;
  expanded.insert(expanded.begin() + dim + 1, repeats);
  merged[dim] = merged[dim] * repeats;
  const at::Tensor repeated = x.unsqueeze(dim + 1).expand_symint(expanded).reshape_symint(merged);
  return at::slice_symint(repeated, dim, 0, T, 1);
}

}  // namespace hkt::ops
