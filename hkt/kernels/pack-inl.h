// Packing: rows of any type and stride into the layouts of tile-inl.h, and rows out of them.

#include <cstdint>
#include <cstring>

#include "hkt/kernels/convert.h"
#include "hkt/kernels/tensor.h"

#if defined(HKT_KERNELS_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_PACK_INL_H_
#undef HKT_KERNELS_PACK_INL_H_
#else
#define HKT_KERNELS_PACK_INL_H_
#endif

#include "hkt/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// Rows of one head of an operand.
template <class Pointer>
struct Rows {
  Pointer data;
  int64_t row, column;
  Type type;

  Rows From(int64_t first) const {
    const int64_t bytes = first * row * SizeOf(type);
    if constexpr (std::is_const_v<std::remove_pointer_t<Pointer>>) {
      return {static_cast<const char*>(data) + bytes, row, column, type};
    } else {
      return {static_cast<char*>(data) + bytes, row, column, type};
    }
  }
};

using InputRows = Rows<const void*>;
using OutputRows = Rows<void*>;

template <class Pointer>
Rows<Pointer> HeadRows(const Strided<Pointer>& tensor, Type type, int64_t b, int64_t h) {
  const Rows<Pointer> all = {tensor.data, 1, tensor.column, type};
  Rows<Pointer> rows = all.From(b * tensor.batch + h * tensor.head);
  rows.row = tensor.row;
  return rows;
}

// Row `i` as float32: in place where it lies so already, else converted into `buffer` [n].
HWY_INLINE const float* ReadRow(const InputRows& rows, int64_t i, int64_t n,
                                float* HWY_RESTRICT buffer) {
  if (rows.type == Type::kFloat32) {
    const float* source = static_cast<const float*>(rows.data) + i * rows.row;
    if (rows.column == 1) return source;
    for (int64_t c = 0; c < n; ++c) buffer[c] = source[c * rows.column];
    return buffer;
  }
  const uint16_t* source = static_cast<const uint16_t*>(rows.data) + i * rows.row;
  if (rows.type == Type::kBFloat16) {
    for (int64_t c = 0; c < n; ++c) buffer[c] = FromBFloat16(source[c * rows.column]);
  } else {
    for (int64_t c = 0; c < n; ++c) buffer[c] = FromFloat16(source[c * rows.column]);
  }
  return buffer;
}

HWY_INLINE void WriteRow(const float* HWY_RESTRICT source, const OutputRows& rows, int64_t i,
                         int64_t n) {
  if (rows.type == Type::kFloat32) {
    float* target = static_cast<float*>(rows.data) + i * rows.row;
    if (rows.column == 1) {
      std::memcpy(target, source, static_cast<size_t>(n) * sizeof(float));
    } else {
      for (int64_t c = 0; c < n; ++c) target[c * rows.column] = source[c];
    }
    return;
  }
  uint16_t* target = static_cast<uint16_t*>(rows.data) + i * rows.row;
  if (rows.type == Type::kBFloat16) {
    for (int64_t c = 0; c < n; ++c) target[c * rows.column] = ToBFloat16(source[c]);
  } else {
    for (int64_t c = 0; c < n; ++c) target[c * rows.column] = ToFloat16(source[c]);
  }
}

// Rows `from` … `to` - 1 are set to 0.
HWY_INLINE void ZeroRows(const OutputRows& rows, int64_t from, int64_t to, int64_t n) {
  for (int64_t i = from; i < to; ++i) {
    if (rows.column == 1) {
      std::memset(rows.From(i).data, 0, static_cast<size_t>(n * SizeOf(rows.type)));
      continue;
    }
    for (int64_t c = 0; c < n; ++c) {
      if (rows.type == Type::kFloat32) {
        static_cast<float*>(rows.data)[i * rows.row + c * rows.column] = 0;
      } else {
        static_cast<uint16_t*>(rows.data)[i * rows.row + c * rows.column] = 0;
      }
    }
  }
}

// Rows first … first + n - 1 of `rows` [., D], times `factor`, into panels of `capacity` rows. Rows
// n … padded - 1 become 0. `buffer` [D] floats.
HWY_INLINE void PackPanels(const InputRows& rows, int64_t first, int64_t n, int64_t padded,
                           int64_t D, float factor, int64_t capacity, float* HWY_RESTRICT buffer,
                           float* HWY_RESTRICT panels) {
  const DF d;
  const VF f = hn::Set(d, factor);
  for (int64_t i = 0; i < n; ++i) {
    const float* source = ReadRow(rows, first + i, D, buffer);
    for (int64_t c = 0; c < D; c += kPanel) {
      float* HWY_RESTRICT target = panels + (c * capacity + i * kPanel);
      if (c + kPanel <= D) {
        hn::Store(hn::Mul(f, hn::LoadU(d, source + c)), d, target);
        hn::Store(hn::Mul(f, hn::LoadU(d, source + c + kLanes)), d, target + kLanes);
      } else {
        for (int64_t u = 0; u < kPanel; ++u) target[u] = c + u < D ? factor * source[c + u] : 0.0F;
      }
    }
  }
  for (int64_t c = 0; c < D; c += kPanel) {
    if (padded > n) {
      std::memset(panels + (c * capacity + n * kPanel), 0,
                  static_cast<size_t>((padded - n) * kPanel) * sizeof(float));
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// The four floats at p[0], p[step], … of kLanes / 4 rows, side by side.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const float* HWY_RESTRICT p, int64_t step) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> half;
    const int64_t blocks = static_cast<int64_t>(hn::MaxLanes(half)) / 4;
    return hn::Combine(d, LoadBlocks(half, p + blocks * step, step), LoadBlocks(half, p, step));
  }
}
#endif

// Rows first … first + n - 1 of `rows` [., D], times `factor`, into transposed panels: element (i,
// k) at panel i / kPanel, [k][i % kPanel]. The last panel's lanes behind n are 0. `buffer` [kLanes,
// D] floats.
HWY_INLINE void PackTransposed(const InputRows& rows, int64_t first, int64_t n, int64_t D,
                               float factor, float* HWY_RESTRICT buffer,
                               float* HWY_RESTRICT panels) {
  for (int64_t i = 0; i < RoundUp(n, kPanel); i += kLanes) {
    float* HWY_RESTRICT target = panels + i / kPanel * kPanel * D + i % kPanel;
    const float* source = buffer;
    int64_t ld = D;
    if (i + kLanes <= n && rows.type == Type::kFloat32 && rows.column == 1) {
      source = static_cast<const float*>(rows.data) + (first + i) * rows.row;
      ld = rows.row;
    } else {
      for (int64_t r = 0; r < kLanes; ++r) {
        float* HWY_RESTRICT copy = buffer + r * D;
        if (i + r < n) {
          const float* row = ReadRow(rows, first + i + r, D, copy);
          if (row != copy) std::memcpy(copy, row, static_cast<size_t>(D) * sizeof(float));
        } else {
          std::memset(copy, 0, static_cast<size_t>(D) * sizeof(float));
        }
      }
    }
    int64_t k = 0;
#if HWY_TARGET != HWY_SCALAR
    // kLanes rows x 4 columns: block b of v_q is row 4 b + q, so that a 4 x 4 transposition inside
    // every block leaves the rows in order.
    const DF d;
    const hn::RepartitionToWide<DF> wide;
    const VF f = hn::Set(d, factor);
    for (; k + 4 <= D; k += 4) {
      const VF v0 = LoadBlocks(d, source + k, 4 * ld);
      const VF v1 = LoadBlocks(d, source + k + ld, 4 * ld);
      const VF v2 = LoadBlocks(d, source + k + 2 * ld, 4 * ld);
      const VF v3 = LoadBlocks(d, source + k + 3 * ld, 4 * ld);
      const auto t0 = hn::BitCast(wide, hn::InterleaveLower(d, v0, v1));
      const auto t1 = hn::BitCast(wide, hn::InterleaveUpper(d, v0, v1));
      const auto t2 = hn::BitCast(wide, hn::InterleaveLower(d, v2, v3));
      const auto t3 = hn::BitCast(wide, hn::InterleaveUpper(d, v2, v3));
      const VF w0 = hn::BitCast(d, hn::InterleaveLower(wide, t0, t2));
      const VF w1 = hn::BitCast(d, hn::InterleaveUpper(wide, t0, t2));
      const VF w2 = hn::BitCast(d, hn::InterleaveLower(wide, t1, t3));
      const VF w3 = hn::BitCast(d, hn::InterleaveUpper(wide, t1, t3));
      hn::Store(hn::Mul(f, w0), d, target + k * kPanel);
      hn::Store(hn::Mul(f, w1), d, target + (k + 1) * kPanel);
      hn::Store(hn::Mul(f, w2), d, target + (k + 2) * kPanel);
      hn::Store(hn::Mul(f, w3), d, target + (k + 3) * kPanel);
    }
#endif
    for (; k < D; ++k) {
      for (int64_t r = 0; r < kLanes; ++r) target[k * kPanel + r] = factor * source[r * ld + k];
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
