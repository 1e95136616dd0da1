#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "hkt/base/random.h"
#include "hkt/kernels/convert.h"
#include "hkt/kernels/tensor.h"

namespace hkt::kernels {

// Where the elements of a tensor [B, T, d] lie.
enum class Placement { kPlain, kGaps, kTransposed, kReversed, kBroadcast };
inline constexpr Placement kInputPlacements[] = {Placement::kPlain, Placement::kGaps,
                                                 Placement::kTransposed, Placement::kReversed,
                                                 Placement::kBroadcast};
inline constexpr int kOutputPlacements = 4;  // the last overlaps itself

// A tensor in memory that holds NaN wherever no element lies, in front and behind included: who
// reads there spoils the result, who writes there is found out.
class StridedTensor {
 public:
  StridedTensor(int64_t B, int64_t T, int64_t d, Type type, Placement placement)
      : B_(B), T_(T), d_(d), type_(type) {
    int64_t first = kMargin, size = B * T * d;
    switch (placement) {
      case Placement::kPlain:
        Set(T * d, d, 1);
        break;
      case Placement::kGaps:
        Set(T * (d + 3) + 5, d + 3, 1);
        first += 1;
        size = B * batch_;
        break;
      case Placement::kTransposed:
        Set((T + 2) * d, 1, T + 2);
        size = B * batch_;
        break;
      case Placement::kReversed:
        Set(T * d, -d, 1);
        first += (T - 1) * d;
        break;
      case Placement::kBroadcast:
        Set(0, d, 1);
        break;
    }
    if (type_ == Type::kFloat32) {
      floats_.assign(std::max<int64_t>(size, 0) + 2 * kMargin,
                     std::numeric_limits<float>::quiet_NaN());
    } else {
      halves_.assign(std::max<int64_t>(size, 0) + 2 * kMargin, kNanHalf);
    }
    first_ = first;
  }

  template <class Strided>
  Strided Of() {
    Strided strided;
    strided.data = type_ == Type::kFloat32 ? static_cast<void*>(floats_.data() + first_)
                                           : static_cast<void*>(halves_.data() + first_);
    strided.batch = batch_;
    strided.row = row_;
    strided.column = column_;
    return strided;
  }

  void Put(int64_t b, int64_t t, int64_t c, double value) {
    const int64_t at = first_ + b * batch_ + t * row_ + c * column_;
    const float rounded = static_cast<float>(value);
    if (type_ == Type::kFloat32) {
      floats_[at] = rounded;
    } else {
      halves_[at] = type_ == Type::kBFloat16 ? ToBFloat16(rounded) : ToFloat16(rounded);
    }
  }
  double Get(int64_t b, int64_t t, int64_t c) const { return At(Index(b, t, c)); }

  StridedTensor& Fill(Random& random, double size) {
    ForEach([&](int64_t b, int64_t t, int64_t c) { Put(b, t, c, size * Symmetric(random)); });
    return *this;
  }
  static double Symmetric(Random& random) { return 2 * random.Uniform() - 1; }

  std::vector<double> Values() const {
    std::vector<double> values;
    ForEach([&](int64_t b, int64_t t, int64_t c) { values.push_back(Get(b, t, c)); });
    return values;
  }

  // Whether everything between, before and behind the elements is as it was.
  bool OthersUntouched() const {
    const int64_t n = static_cast<int64_t>(floats_.size() + halves_.size());
    std::vector<bool> element(n);
    ForEach([&](int64_t b, int64_t t, int64_t c) { element[Index(b, t, c)] = true; });
    for (int64_t i = 0; i < n; ++i) {
      if (!element[i] && !std::isnan(At(i))) return false;
    }
    return true;
  }

 private:
  static constexpr int64_t kMargin = 64;
  static constexpr uint16_t kNanHalf = 0x7FFF;  // NaN in both types

  void Set(int64_t batch, int64_t row, int64_t column) {
    batch_ = batch;
    row_ = row;
    column_ = column;
  }
  int64_t Index(int64_t b, int64_t t, int64_t c) const {
    return first_ + b * batch_ + t * row_ + c * column_;
  }
  double At(int64_t i) const {
    if (type_ == Type::kFloat32) return floats_[i];
    return type_ == Type::kBFloat16 ? FromBFloat16(halves_[i]) : FromFloat16(halves_[i]);
  }
  template <class Run>
  void ForEach(const Run& run) const {
    for (int64_t b = 0; b < B_; ++b) {
      for (int64_t t = 0; t < T_; ++t) {
        for (int64_t c = 0; c < d_; ++c) run(b, t, c);
      }
    }
  }

  int64_t B_, T_, d_;
  Type type_;
  int64_t batch_ = 0, row_ = 0, column_ = 0, first_ = 0;
  std::vector<float> floats_;
  std::vector<uint16_t> halves_;
};

}  // namespace hkt::kernels
