// 16-bit conversions against the bit-by-bit ones of hkt/testing, which share nothing with them.

#include "hkt/kernels/convert.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "hkt/testing/element.h"

namespace hkt::kernels {
namespace {

using testing::Decode;
using testing::Element;
using testing::Encode;

TEST(ConvertTest, EveryNumberOfSixteenBits) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const double brain = Decode(Element::kBFloat16, bits), ieee = Decode(Element::kFloat16, bits);
    if (std::isnan(brain)) {
      ASSERT_TRUE(std::isnan(FromBFloat16(half))) << bits;
      ASSERT_TRUE(std::isnan(FromBFloat16(ToBFloat16(FromBFloat16(half))))) << bits;
    } else {
      ASSERT_EQ(FromBFloat16(half), brain) << bits;
      ASSERT_EQ(ToBFloat16(FromBFloat16(half)), bits);
    }
    if (std::isnan(ieee)) {
      ASSERT_TRUE(std::isnan(FromFloat16(half))) << bits;
      ASSERT_TRUE(std::isnan(FromFloat16(ToFloat16(FromFloat16(half))))) << bits;
    } else {
      ASSERT_EQ(FromFloat16(half), ieee) << bits;
      ASSERT_EQ(ToFloat16(FromFloat16(half)), bits);
    }
  }
}

// Every number, the middle to the next one, and the float32 on either side of the middle.
TEST(ConvertTest, RoundsToTheNearestTiesToEven) {
  const auto check = [](float x) {
    for (const float value : {x, -x}) {
      ASSERT_EQ(ToBFloat16(value), Encode(Element::kBFloat16, static_cast<double>(value))) << value;
      ASSERT_EQ(ToFloat16(value), Encode(Element::kFloat16, static_cast<double>(value))) << value;
    }
  };
  for (const Element element : {Element::kBFloat16, Element::kFloat16}) {
    const uint32_t infinity = Encode(element, INFINITY);
    for (uint32_t bits = 0; bits < infinity; ++bits) {
      const double at = Decode(element, bits);
      // Above the largest number as if there were one more.
      const double next =
          bits + 1 < infinity ? Decode(element, bits + 1) : 2 * at - Decode(element, bits - 1);
      const auto middle = static_cast<float>(at + (next - at) / 2);
      check(static_cast<float>(at));
      check(middle);
      check(std::nextafter(middle, 0.0F));
      check(std::nextafter(middle, std::numeric_limits<float>::infinity()));
      if (HasFatalFailure()) return;
    }
  }
  check(std::numeric_limits<float>::max());
  check(std::numeric_limits<float>::denorm_min());
  check(std::numeric_limits<float>::infinity());
}

}  // namespace
}  // namespace hkt::kernels
