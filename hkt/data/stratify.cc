#include "hkt/data/stratify.h"

#include <algorithm>

#include "hkt/base/random.h"

namespace hkt::data {

std::vector<uint8_t> DealTenths(std::span<const int32_t> labels, int64_t classes, uint64_t seed,
                                Stream stream, int tenths) {
  std::vector<std::vector<size_t>> members(static_cast<size_t>(classes));
  for (size_t i = 0; i < labels.size(); ++i)
    members.at(static_cast<size_t>(labels[i])).push_back(i);
  std::vector<uint8_t> part(labels.size(), 0);
  for (size_t label = 0; label < members.size(); ++label) {
    Random random({seed, stream, label});
    random.Shuffle(members[label]);
    const size_t count = members[label].size(), each = std::max<size_t>(1, count / 10);
    for (size_t i = 0; i < std::min(count, each * static_cast<size_t>(tenths)); ++i)
      part[members[label][i]] = static_cast<uint8_t>(1 + i / each);
  }
  return part;
}

}  // namespace hkt::data
