// Philox in vectors of 64-bit lanes, a block of four elements a lane, and the product with x.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hkt/kernels/dropout.h"
#include "hkt/kernels/queue.h"

#if defined(HKT_KERNELS_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HKT_KERNELS_DROPOUT_INL_H_
#undef HKT_KERNELS_DROPOUT_INL_H_
#else
#define HKT_KERNELS_DROPOUT_INL_H_
#endif

#include "hkt/kernels/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace hkt::kernels {
namespace HWY_NAMESPACE {

// Elements of a piece, whose bits (twice 8 KiB) and floats (16 KiB) stay in L1; a multiple of the
// lanes and of four.
constexpr int64_t kDropoutPiece = 4096;
// Pieces that a worker takes at a time.
constexpr int64_t kPiecesAtOnce = 8;

// bits[block - first], for blocks of one upper half: first + blocks <= 2^32 within it.
HWY_INLINE void FillBits(uint64_t seed, uint64_t first, int64_t blocks,
                         uint64_t* HWY_RESTRICT bits) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t i = 0; i < blocks; ++i) bits[i] = PhiloxBits(seed, first + static_cast<uint64_t>(i));
#else
  const hn::ScalableTag<uint64_t> d64;
  const hn::Repartition<uint32_t, decltype(d64)> d32;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d64));
  const auto weyl = hn::Set(d64, uint64_t{kPhiloxWeyl});
  const auto low_half = hn::Set(d64, uint64_t{0xFFFFFFFF});
  const uint64_t upper = static_cast<uint32_t>((seed >> 32) + (first >> 32));
  const auto start = hn::Set(d64, upper << 32 | (first & 0xFFFFFFFF));
  const auto multiplier = hn::BitCast(d32, hn::Set(d64, kPhiloxMultiplier));
  // Four vectors at a time: a round waits for its product.
  for (int64_t i = 0; i < blocks; i += 4 * lanes) {
    const auto at = [&](int64_t v) HWY_ATTR {
      return hn::Add(start, hn::Iota(d64, static_cast<uint64_t>(i + v * lanes)));
    };
    auto s0 = at(0), s1 = at(1), s2 = at(2), s3 = at(3);
    auto key = hn::Set(d64, seed & 0xFFFFFFFF);
    const auto round = [&](auto& state) HWY_ATTR {
      // low, high = hi(product) ^ key ^ high, lo(product)
      const auto product = hn::MulEven(hn::BitCast(d32, state), multiplier);
      const auto low = hn::Xor(hn::ShiftRight<32>(hn::Xor(product, state)), key);
      state = hn::Or(low, hn::ShiftLeft<32>(product));
    };
    HKT_UNROLL for (int r = 0; r < kPhiloxRounds; ++r) {
      round(s0);
      round(s1);
      round(s2);
      round(s3);
      key = hn::And(hn::Add(key, weyl), low_half);
    }
    hn::StoreU(s0, d64, bits + i);
    hn::StoreU(s1, d64, bits + i + lanes);
    hn::StoreU(s2, d64, bits + i + 2 * lanes);
    hn::StoreU(s3, d64, bits + i + 3 * lanes);
  }
#endif
}

void DropoutPass(const DropoutParams& p, const Parallel& parallel) {
  const DF d;
  const hn::Rebind<uint16_t, DF> d16;
  const hn::RebindToSigned<DF> d32;
  const auto below = hn::Set(d32, static_cast<int32_t>(p.threshold) - 1);
  const VF scale =
      hn::Set(d, p.threshold < 65536 ? 65536.0F / static_cast<float>(65536 - p.threshold) : 0.0F);
  const auto piece = [&](int64_t from) HWY_ATTR {
    HWY_ALIGN uint64_t bits[kDropoutPiece / 4];
    HWY_ALIGN uint16_t words[kDropoutPiece];
    HWY_ALIGN float in_buffer[kDropoutPiece], out_buffer[kDropoutPiece];
    const int64_t n = std::min(kDropoutPiece, p.n - from);
    FillBits(p.seed, static_cast<uint64_t>(from) / 4, CeilDiv(n, 4), bits);
    std::memcpy(words, bits, sizeof(words));
    const bool direct = p.type == Type::kFloat32;
    const int64_t size = SizeOf(p.type);
    const InputRows x = {static_cast<const char*>(p.x) + from * size, n, 1, p.type};
    const OutputRows out = {static_cast<char*>(p.out) + from * size, n, 1, p.type};
    const float* source = ReadRow(x, 0, n, in_buffer);
    float* target = direct ? static_cast<float*>(out.data) : out_buffer;
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      const auto keep = hn::Gt(hn::PromoteTo(d32, hn::LoadU(d16, words + i)), below);
      const VF factor = hn::IfThenElseZero(hn::RebindMask(d, keep), scale);
      hn::StoreU(hn::Mul(hn::LoadU(d, source + i), factor), d, target + i);
    }
    for (; i < n; ++i) target[i] = source[i] * (words[i] >= p.threshold ? hn::GetLane(scale) : 0);
    if (!direct) WriteRow(out_buffer, out, 0, n);
  };
  const int64_t pieces = CeilDiv(p.n, kDropoutPiece);
  RunQueue(parallel, CeilDiv(pieces, kPiecesAtOnce), [&](int64_t, int64_t item) HWY_ATTR {
    const int64_t last = std::min((item + 1) * kPiecesAtOnce, pieces);
    for (int64_t i = item * kPiecesAtOnce; i < last; ++i) piece(i * kDropoutPiece);
  });
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace hkt::kernels
HWY_AFTER_NAMESPACE();

#endif
