// Operands are what kernel tests believe: that a stray read shows and a stray write is told.

#include "hkt/testing/operand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "hkt/base/error.h"

namespace hkt::testing {
namespace {

using ::testing::HasSubstr;

constexpr Element kElements[] = {Element::kFloat32, Element::kBFloat16, Element::kFloat16};
constexpr std::array<int64_t, 4> kSizes = {2, 3, 4, 5};

std::vector<double> Count(int64_t size) {
  std::vector<double> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = static_cast<double>(i);  // exact below 256
  return values;
}

// An element as a kernel finds it: from data() and strides() alone.
int64_t OffsetOf(const Operand& x, int64_t b, int64_t h, int64_t t, int64_t d) {
  return b * x.strides()[0] + h * x.strides()[1] + t * x.strides()[2] + d * x.strides()[3];
}
double ElementOf(const Operand& x, Element element, int64_t b, int64_t h, int64_t t, int64_t d) {
  return Decode(element, BitsAt(element, x.data(), OffsetOf(x, b, h, t, d)));
}

TEST(OperandTest, EveryLayoutHoldsTheSameTensor) {
  for (const Element element : kElements) {
    for (int i = 0; i < kOutputLayouts; ++i) {
      SCOPED_TRACE(Concat(NameOf(element), " ", NameOf(kLayouts[i])));
      Operand x(kSizes, element, kLayouts[i]);
      x.Set(Count(120));
      EXPECT_EQ(x.Get(), Count(120));
      EXPECT_EQ(ElementOf(x, element, 1, 2, 3, 4), 119);
      EXPECT_EQ(ElementOf(x, element, 1, 0, 2, 3), 60 + 13);
      EXPECT_EQ(x.Trespass(), "");
    }
  }
}

TEST(OperandTest, LayoutsAreWhatTheirNamesSay) {
  const auto strides = [](Layout layout) {
    return Operand(kSizes, Element::kFloat32, layout).strides();
  };
  using Strides = std::array<int64_t, 4>;
  EXPECT_EQ(strides(Layout::kContiguous), (Strides{60, 20, 5, 1}));
  EXPECT_EQ(strides(Layout::kTransposed), (Strides{60, 5, 15, 1}));
  EXPECT_EQ(strides(Layout::kColumnMajor), (Strides{60, 20, 1, 4}));
  EXPECT_EQ(strides(Layout::kReversed), (Strides{-60, -20, -5, -1}));
  EXPECT_EQ(strides(Layout::kBroadcast), (Strides{0, 0, 5, 1}));
  EXPECT_EQ(strides(Layout::kBroadcastRows), (Strides{15, 5, 0, 1}));
  EXPECT_EQ(strides(Layout::kSpread)[3], 3);
  EXPECT_GT(strides(Layout::kSliced)[2], 2 * 5);
}

TEST(OperandTest, BroadcastsRepeatWhatTheyHold) {
  Operand x(kSizes, Element::kFloat32, Layout::kBroadcast);
  x.Set(Count(120));
  const std::vector<double> values = x.Get();
  for (int64_t i = 0; i < 120; ++i) EXPECT_EQ(values[i], values[i % 20]) << i;
  Operand rows(kSizes, Element::kFloat32, Layout::kBroadcastRows);
  rows.Set(Count(120));
  EXPECT_EQ(ElementOf(rows, Element::kFloat32, 1, 1, 0, 2),
            ElementOf(rows, Element::kFloat32, 1, 1, 3, 2));
}

// Outputs share no memory, or two elements would be one.
TEST(OperandTest, OutputLayoutsDoNotOverlap) {
  for (int i = 0; i < kOutputLayouts; ++i) {
    const Operand x(kSizes, Element::kFloat32, kLayouts[i]);
    std::set<int64_t> offsets;
    for (int64_t e = 0; e < 120; ++e)
      offsets.insert(OffsetOf(x, e / 60, e / 20 % 3, e / 5 % 4, e % 5));
    EXPECT_EQ(offsets.size(), 120u) << NameOf(kLayouts[i]);
  }
}

TEST(OperandTest, WhatIsNotAnElementIsNan) {
  for (const Element element : kElements) {
    for (const Layout layout : kLayouts) {
      Operand x(kSizes, element, layout);
      EXPECT_TRUE(std::isnan(ElementOf(x, element, 1, 2, 3, 4))) << "not written yet";
      x.Set(std::vector<double>(120, 1.0));
      std::set<int64_t> inside;
      for (int64_t e = 0; e < 120; ++e)
        inside.insert(OffsetOf(x, e / 60, e / 20 % 3, e / 5 % 4, e % 5));
      for (int64_t i = *inside.begin() - Operand::kGuard; i <= *inside.rbegin() + Operand::kGuard;
           ++i) {
        EXPECT_EQ(std::isnan(Decode(element, BitsAt(element, x.data(), i))), !inside.contains(i))
            << NameOf(layout) << " " << i;
      }
    }
  }
}

TEST(OperandTest, StrayWritesAreTold) {
  for (const Element element : kElements) {
    for (const Layout layout : kLayouts) {
      SCOPED_TRACE(Concat(NameOf(element), " ", NameOf(layout)));
      const Operand clean(kSizes, element, layout);
      std::set<int64_t> inside;
      for (int64_t e = 0; e < 120; ++e)
        inside.insert(OffsetOf(clean, e / 60, e / 20 % 3, e / 5 % 4, e % 5));
      std::vector<int64_t> outside = {*inside.begin() - Operand::kGuard, *inside.begin() - 1,
                                      *inside.rbegin() + 1, *inside.rbegin() + Operand::kGuard};
      for (int64_t i = *inside.begin(); i < *inside.rbegin(); ++i) {
        if (!inside.contains(i)) outside.push_back(i);  // the gaps
      }
      for (const int64_t offset : outside) {
        Operand x = clean;
        SetBitsAt(element, x.data(), offset, Encode(element, 3.0));
        EXPECT_THAT(x.Trespass(), HasSubstr(Concat("offset ", offset, " from"))) << offset;
        x = clean;  // another NaN is a write as well
        SetBitsAt(element, x.data(), offset, Encode(element, NAN));
        EXPECT_NE(x.Trespass(), "") << offset;
      }
    }
  }
}

TEST(OperandTest, EmptyTensorsAndNoGuard) {
  const Operand empty({2, 0, 4, 5}, Element::kFloat32, Layout::kContiguous);
  EXPECT_TRUE(empty.Get().empty());
  EXPECT_EQ(empty.Trespass(), "");
  Operand bare({1, 1, 1, 3}, Element::kFloat32, Layout::kReversed, 0);
  bare.Set(std::vector<double>{1, 2, 3});
  EXPECT_EQ(bare.Get(), (std::vector<double>{1, 2, 3}));
}

TEST(OperandTest, FillRowFillsThatRowOfEveryHead) {
  for (int i = 0; i < kOutputLayouts; ++i) {
    Operand x(kSizes, Element::kFloat32, kLayouts[i]);
    x.Set(Count(120));
    x.FillRow(1, 2, -1);
    std::vector<double> want = Count(120);
    for (int64_t e = 0; e < 120; ++e) {
      if (e / 60 == 1 && e / 5 % 4 == 2) want[e] = -1;
    }
    EXPECT_EQ(x.Get(), want) << NameOf(kLayouts[i]);
  }
}

}  // namespace
}  // namespace hkt::testing
