#include "hkt/testing/operand.h"

#include <algorithm>

#include "hkt/base/error.h"

namespace hkt::testing {
namespace {

// NaN with bits that no arithmetic produces, one for what must not be touched and one for what has
// not been written yet.
uint32_t Poison(Element element) {
  return element == Element::kFloat32    ? 0x7fc5a5a5
         : element == Element::kBFloat16 ? 0x7fe5
                                         : 0x7ea5;
}
uint32_t Unwritten(Element element) {
  return element == Element::kFloat32    ? 0x7fd2d2d2
         : element == Element::kBFloat16 ? 0x7fd2
                                         : 0x7ed2;
}

std::array<int64_t, 4> StridesOf(const std::array<int64_t, 4>& sizes, Layout layout) {
  const auto [B, H, T, D] = sizes;
  switch (layout) {
    case Layout::kContiguous:
      return {H * T * D, T * D, D, 1};
    case Layout::kTransposed:
      return {T * H * D, D, H * D, 1};
    case Layout::kSliced:
      return {H * T * 2 * (D + 3), T * 2 * (D + 3), 2 * (D + 3), 1};
    case Layout::kColumnMajor:
      return {H * D * T, D * T, 1, T};
    case Layout::kSpread:
      return {H * T * (3 * D + 1), T * (3 * D + 1), 3 * D + 1, 3};
    case Layout::kReversed:
      return {-H * T * D, -T * D, -D, -1};
    case Layout::kBroadcast:
      return {0, 0, D, 1};
    case Layout::kBroadcastRows:
      return {H * D, D, 0, 1};
  }
  return {};
}

}  // namespace

const char* NameOf(Layout layout) {
  constexpr const char* kNames[] = {"contiguous", "transposed", "sliced",    "column-major",
                                    "spread",     "reversed",   "broadcast", "broadcast-rows"};
  return kNames[static_cast<int>(layout)];
}

Operand::Operand(std::array<int64_t, 4> sizes, Element element, Layout layout, int64_t guard)
    : sizes_(sizes), strides_(StridesOf(sizes, layout)), element_(element) {
  int64_t first = 0, last = -1;  // offsets from element 0
  if (std::all_of(sizes.begin(), sizes.end(), [](int64_t size) { return size > 0; })) {
    last = 0;
    for (int i = 0; i < 4; ++i) {
      const int64_t reach = (sizes[i] - 1) * strides_[i];
      (reach < 0 ? first : last) += reach;
    }
  }
  const int64_t count = last - first + 1 + 2 * guard;
  origin_ = guard - first;
  memory_.resize(count * BytesOf(element));
  for (int64_t i = 0; i < count; ++i) SetBitsAt(element, memory_.data(), i, Poison(element));
  ForEach([&](int64_t, int64_t offset) {
    SetBitsAt(element_, memory_.data(), origin_ + offset, Unwritten(element_));
  });
}

// visit(position in [B, H, T, D] order, offset from element 0).
template <class Visit>
void Operand::ForEach(const Visit& visit) const {
  int64_t position = 0;
  for (int64_t b = 0; b < sizes_[0]; ++b) {
    for (int64_t h = 0; h < sizes_[1]; ++h) {
      for (int64_t t = 0; t < sizes_[2]; ++t) {
        for (int64_t d = 0; d < sizes_[3]; ++d)
          visit(position++, b * strides_[0] + h * strides_[1] + t * strides_[2] + d * strides_[3]);
      }
    }
  }
}

void Operand::Set(std::span<const double> values) {
  ForEach([&](int64_t position, int64_t offset) {
    SetBitsAt(element_, memory_.data(), origin_ + offset, Encode(element_, values[position]));
  });
}

std::vector<double> Operand::Get() const {
  std::vector<double> values(sizes_[0] * sizes_[1] * sizes_[2] * sizes_[3]);
  ForEach([&](int64_t position, int64_t offset) {
    values[position] = Decode(element_, BitsAt(element_, memory_.data(), origin_ + offset));
  });
  return values;
}

void Operand::FillRow(int64_t b, int64_t row, double value) {
  for (int64_t h = 0; h < sizes_[1]; ++h) {
    for (int64_t d = 0; d < sizes_[3]; ++d)
      SetBitsAt(element_, memory_.data(),
                origin_ + b * strides_[0] + h * strides_[1] + row * strides_[2] + d * strides_[3],
                Encode(element_, value));
  }
}

std::string Operand::Trespass() const {
  const int64_t count = static_cast<int64_t>(memory_.size()) / BytesOf(element_);
  std::vector<bool> inside(count, false);
  ForEach([&](int64_t, int64_t offset) { inside[origin_ + offset] = true; });
  for (int64_t i = 0; i < count; ++i) {
    if (!inside[i] && BitsAt(element_, memory_.data(), i) != Poison(element_))
      return Concat("offset ", i - origin_, " from element 0 was overwritten with ",
                    Decode(element_, BitsAt(element_, memory_.data(), i)));
  }
  return "";
}

}  // namespace hkt::testing
