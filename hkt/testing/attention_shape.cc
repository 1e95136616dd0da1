#include "hkt/testing/attention_shape.h"

#include <iterator>
#include <set>

#include "hkt/base/error.h"

namespace hkt::testing {

std::string AttentionShape::ToString() const {
  return Concat("B=", B, " H=", H, " Hkv=", Hkv, " T=", T, " D=", D, " Dv=", Dv, " L=", L,
                " s=", s);
}

std::vector<int64_t> TailLengths(int64_t s, std::initializer_list<int64_t> edges) {
  std::set<int64_t> lengths = {1, 2, 3, s - 1, s, s + 1, 97, 193};
  for (const int64_t edge : edges) {
    for (const int64_t around : {edge, 2 * edge}) lengths.insert({around - 1, around, around + 1});
  }
  return {lengths.begin(), lengths.end()};
}

AttentionShape RandomAttentionShape(Random& random, int64_t T_max) {
  AttentionShape shape;
  shape.B = random.Between(1, 3);
  shape.Hkv = random.Between(1, 2);
  shape.H = shape.Hkv * random.Between(1, 3);
  // Most faults show at small T, where many cases are cheap.
  shape.T = random.Below(4) ? random.Between(1, 40) : random.Between(1, T_max);
  const auto width = [&] {
    return random.Below(4) ? random.Between(1, 33)
                           : kHeadWidths[random.Below(std::size(kHeadWidths))];
  };
  shape.D = width();
  shape.Dv = random.Below(3) ? width() : shape.D;
  shape.L = random.Below(8) ? random.Between(1, 4) : random.Between(5, 8);
  shape.s = random.Below(8) ? random.Between(2, 5) : random.Between(6, 100);
  return shape;
}

}  // namespace hkt::testing
