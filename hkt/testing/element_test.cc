#include "hkt/testing/element.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace hkt::testing {
namespace {

TEST(ElementTest, KnownBitsBothWays) {
  struct Case {
    Element element;
    double value;
    uint32_t bits;
  };
  const Case cases[] = {
      {Element::kBFloat16, 1.0, 0x3f80},        {Element::kBFloat16, -2.5, 0xc020},
      {Element::kBFloat16, 0x1p-133, 1},        {Element::kBFloat16, -0.0, 0x8000},
      {Element::kFloat16, 1.0, 0x3c00},         {Element::kFloat16, -65504, 0xfbff},
      {Element::kFloat16, 0x1p-24, 1},          {Element::kFloat16, 0x1p-14, 0x0400},
      {Element::kFloat16, -INFINITY, 0xfc00},   {Element::kFloat32, 0x1p-149, 1},
      {Element::kFloat32, INFINITY, 0x7f800000}};
  for (const Case& c : cases) {
    EXPECT_EQ(Encode(c.element, c.value), c.bits) << NameOf(c.element) << " " << c.value;
    EXPECT_EQ(std::bit_cast<uint64_t>(Decode(c.element, c.bits)), std::bit_cast<uint64_t>(c.value))
        << NameOf(c.element) << " " << c.value;
  }
}

TEST(ElementTest, EveryNumberOfSixteenBitsComesBack) {
  for (const Element element : {Element::kBFloat16, Element::kFloat16}) {
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
      const double value = Decode(element, bits);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(Decode(element, Encode(element, value)))) << bits;
      else
        ASSERT_EQ(Encode(element, value), bits) << NameOf(element);
    }
  }
}

// The compiler's own conversion is the oracle; halves between two numbers are among these.
TEST(ElementTest, Float32RoundsAsTheCompilerDoes) {
  for (int i = 0; i < 2000; ++i) {
    const float at = std::ldexp(1 + static_cast<float>(i) * 0x1p-11F, i % 300 - 150);
    const float next = std::nextafter(at, INFINITY);
    const double middle = (static_cast<double>(at) + next) / 2;
    for (const double x : {middle, std::nextafter(middle, 0), std::nextafter(middle, 1e300)}) {
      const uint32_t want = std::bit_cast<uint32_t>(static_cast<float>(x));
      EXPECT_EQ(Encode(Element::kFloat32, x), want) << x;
      EXPECT_EQ(Encode(Element::kFloat32, -x), want | 0x80000000) << x;
    }
  }
}

TEST(ElementTest, TiesGoToEvenAndTheRangeEndsInInfinity) {
  EXPECT_EQ(Decode(Element::kBFloat16, Encode(Element::kBFloat16, 1 + 0x1p-8)), 1.0);
  EXPECT_EQ(Decode(Element::kBFloat16, Encode(Element::kBFloat16, 1 + 3 * 0x1p-8)), 1 + 0x1p-6);
  EXPECT_EQ(Decode(Element::kFloat16, Encode(Element::kFloat16, 65519)), 65504);
  EXPECT_EQ(Decode(Element::kFloat16, Encode(Element::kFloat16, 65520)), INFINITY);
  EXPECT_EQ(Encode(Element::kFloat16, 0x1p-25), 0u);
  EXPECT_EQ(Encode(Element::kFloat16, 0x1.8p-25), 1u);
}

TEST(ElementTest, ReadsAndWritesWhereTold) {
  for (const Element element : {Element::kFloat32, Element::kBFloat16, Element::kFloat16}) {
    char memory[13] = {};  // one byte off, so that no address is aligned
    SetBitsAt(element, memory + 1, 1, 0x1234);
    EXPECT_EQ(BitsAt(element, memory + 1, 1), 0x1234u);
    EXPECT_EQ(BitsAt(element, memory + 1, 0), 0u);
    EXPECT_EQ(BitsAt(element, memory + 1, 2), 0u);
  }
}

}  // namespace
}  // namespace hkt::testing
