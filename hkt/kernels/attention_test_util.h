#pragma once

// Calls of hkt/kernels/attention.h as the tests make them: operands in any layout and type, lying
// in poison; the same call by the reference in double; and comparisons on every SIMD target.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hkt/kernels/attention.h"
#include "hkt/kernels/reference/attention.h"
#include "hkt/testing/attention_shape.h"
#include "hkt/testing/operand.h"

namespace hkt::kernels {

struct AttentionCase {
  testing::AttentionShape shape;
  bool causal = true;
  std::vector<int64_t> lengths = {};  // empty: none given
  std::optional<float> scale = {};    // 1 / sqrt(D)
  testing::Element element = testing::Element::kFloat32;
  // Of queries, keys, value, d_out; and of out and the gradients of the first three.
  std::vector<testing::Layout> layouts = std::vector<testing::Layout>(4);
  std::vector<testing::Layout> out_layouts = std::vector<testing::Layout>(4);
  int64_t guard = testing::Operand::kGuard;
  uint64_t seed = 1;

  float Scale() const;
  int64_t Length(int64_t b) const;  // valid tokens of sequence b
  std::string ToString() const;     // one line
};

// The inputs; uniform in [-1, 1) from the seed.
struct AttentionTensors {
  std::vector<testing::Operand> queries, keys;
  testing::Operand value, d_out;

  // Overwrites what lies at or behind the length, at every level: tokens j >= length, cells that
  // begin there.
  void FillPadding(const AttentionCase& c, double value);
};

AttentionTensors MakeTensors(const AttentionCase& c);

// One tensor of a result, [B, H, T_l, D] (lse [B, H, T]).
struct Part {
  std::string name;  // "out", "lse", "d_queries[0]", …, "d_keys[0]", …, "d_value": in this order
  std::vector<double> values;
  int64_t B, H, T, D;  // its sizes
  int64_t level = 0;
};
using Parts = std::vector<Part>;

// Forward and backward by the kernels. Outputs begin as NaN; writing around them is a failure.
Parts RunKernels(const AttentionCase& c, const AttentionTensors& x, const Parallel& parallel = {});

// The same by the reference, and what a kernel's results may differ from it, element by element
// (attention_bound_test_util.h).
struct Expected {
  Parts want, bounds;
};
Expected RunReference(const AttentionCase& c, const AttentionTensors& x);

void ExpectWithin(const Parts& got, const Expected& expected);
void ExpectSameBits(const Parts& got, const Parts& want);

// The part of sequence b (b < 0: all) that belongs to its first `tokens` tokens: rows [0,
// ceil(tokens / s^l)).
Parts FirstTokens(const AttentionCase& c, const Parts& parts, int64_t b, int64_t tokens);

// body() on every target that this processor runs, or on the one that HKT_TARGET names, until one
// fails; and each with and without poisoned scratch memory.
void ForEachTarget(const std::function<void()>& body);
void ForEachTargetAndPoison(const std::function<void()>& body);

// Forward and backward equal the reference on every target, bit for bit the same with and without
// poisoned scratch. False, with the failure recorded, if not: a sweep then ends. A failure names
// the case in one line, which begins with `repeat`. `x`: other inputs than MakeTensors(c).
bool EqualsReference(const AttentionCase& c, const std::string& repeat = "");
bool EqualsReference(const AttentionCase& c, const AttentionTensors& x,
                     const std::string& repeat = "");

}  // namespace hkt::kernels
