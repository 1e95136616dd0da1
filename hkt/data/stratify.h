#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hkt/data/streams.h"

namespace hkt::data {

// Deals out tenths of every label 0 ... classes-1 (rounded down, at least one example where the
// label has as many as `tenths`), by the seed and the stream: 1 ... `tenths` for an example that is
// in such a part, 0 for the rest. The first tenth is the same whatever their number.
std::vector<uint8_t> DealTenths(std::span<const int32_t> labels, int64_t classes, uint64_t seed,
                                Stream stream, int tenths = 1);

}  // namespace hkt::data
