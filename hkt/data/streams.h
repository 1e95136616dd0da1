#pragma once

#include <cstdint>

namespace hkt::data {

// Second word of the keys of hkt::Random: what is drawn for one purpose never depends on another.
// Fixed for ever, since generated data and stored runs depend on them.
enum Stream : uint64_t {
  kListOpsStream = 1,
  kValidationStream = 2,
  kOrderStream = 3,
  kAugmentStream = 4,
  kLadderStream = 5
};

}  // namespace hkt::data
