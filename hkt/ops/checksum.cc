// hkt::checksum: XXH3-128 of bytes, for Python's hkt.load and hkt.save. The same function as
// hkt/io/checksum.h, which this folder does not see; a test holds the files of both against each
// other.

#define XXH_INLINE_ALL
#include <ATen/core/Tensor.h>
#include <torch/library.h>
#include <xxhash.h>

#include <array>
#include <cstdio>
#include <memory>
#include <new>
#include <string>

namespace hkt::ops {
namespace {

// 32 lower-case hex digits of the pieces' bytes, one after the other. pieces: contiguous uint8 [n]
// on the CPU.
std::string Checksum(at::TensorList pieces) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  if (state == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  for (const at::Tensor& piece : pieces) {
    TORCH_CHECK_VALUE(piece.is_cpu() && piece.scalar_type() == at::kByte && piece.is_contiguous(),
                      "pieces holds a ", piece.toString(), " ", piece.sizes(),
                      "; it must hold contiguous uint8 tensors on the CPU");
    if (piece.numel() > 0) XXH3_128bits_update(state.get(), piece.const_data_ptr(), piece.nbytes());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  std::array<char, 33> text;
  std::snprintf(text.data(), text.size(), "%016llx%016llx",
                static_cast<unsigned long long>(hash.high64),
                static_cast<unsigned long long>(hash.low64));
  return text.data();
}

}  // namespace

TORCH_LIBRARY_IMPL(hkt, CompositeImplicitAutograd, m) { m.impl("checksum", Checksum); }

}  // namespace hkt::ops
