#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hkt/testing/element.h"

// Tensors [B, H, T, D] for kernels on raw pointers, in every memory layout that callers have, lying
// in poison: whatever is not an element of the tensor, between elements and around them, is NaN, so
// that a kernel which reads it shows NaN, and Trespass() tells whether something was written there.

namespace hkt::testing {

enum class Layout {
  kContiguous,     // [B, H, T, D]
  kTransposed,     // [B, T, H, D] memory
  kSliced,         // every second row of wider rows
  kColumnMajor,    // [B, H, D, T] memory: neighbouring columns lie T apart
  kSpread,         // every third column
  kReversed,       // [B, H, T, D] from the end: all strides negative
  kBroadcast,      // one batch entry and one head for all: strides 0; inputs only
  kBroadcastRows,  // one row for all; inputs only
};

constexpr Layout kLayouts[] = {Layout::kContiguous,  Layout::kTransposed,   Layout::kSliced,
                               Layout::kColumnMajor, Layout::kSpread,       Layout::kReversed,
                               Layout::kBroadcast,   Layout::kBroadcastRows};
constexpr int kOutputLayouts = 6;  // the first ones, in which no two elements share memory

const char* NameOf(Layout layout);

class Operand {
 public:
  // Elements of poison on either side. An odd number, so that element 0 has no more than its own
  // alignment. 0 lets AddressSanitizer see reads around the tensor, too.
  static constexpr int64_t kGuard = 67;

  Operand() = default;
  // Elements hold NaN until they are set or written.
  Operand(std::array<int64_t, 4> sizes, Element element, Layout layout, int64_t guard = kGuard);

  // The address of element 0 and the distances of neighbours, in elements: batch, head, row,
  // column.
  void* data() { return memory_.data() + origin_ * BytesOf(element_); }
  const void* data() const { return memory_.data() + origin_ * BytesOf(element_); }
  const std::array<int64_t, 4>& strides() const { return strides_; }

  // In the order [B, H, T, D]. Set rounds to the type; where elements share memory the last stays.
  void Set(std::span<const double> values);
  std::vector<double> Get() const;

  // Overwrites row `row` of every head of batch entry b.
  void FillRow(int64_t b, int64_t row, double value);

  // What was written outside the tensor since construction; empty if nothing was.
  std::string Trespass() const;

 private:
  template <class Visit>
  void ForEach(const Visit& visit) const;

  std::array<int64_t, 4> sizes_{}, strides_{};
  Element element_ = Element::kFloat32;
  int64_t origin_ = 0;  // of element 0, in elements
  std::vector<char> memory_;
};

}  // namespace hkt::testing
