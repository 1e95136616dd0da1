#include "hkt/kernels/attention_test_util.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/kernels/attention_bound_test_util.h"
#include "hkt/kernels/targets.h"
#include "hkt/testing/compare.h"

namespace hkt::kernels {
namespace {

using testing::Element;
using testing::Layout;
using testing::Operand;

// Operands of one call, a tensor a level where `levels`.
Operand MakeOperand(const AttentionCase& c, int64_t H, int64_t l, int64_t D, Layout layout) {
  const int64_t Tl = LevelLength(c.shape.T, c.shape.s, l);
  return Operand({c.shape.B, H, Tl, D}, c.element, layout, c.guard);
}

std::vector<Operand> MakeLevels(const AttentionCase& c, int64_t H, Layout layout) {
  std::vector<Operand> levels;
  for (int64_t l = 0; l < c.shape.L; ++l) levels.push_back(MakeOperand(c, H, l, c.shape.D, layout));
  return levels;
}

void FillRandom(Operand& x, Random& random) {
  std::vector<double> values(x.Get().size());
  for (double& value : values) value = 2 * random.Uniform() - 1;
  x.Set(values);
}

template <class Pointer, class Source>
Strided<Pointer> View(Source& x) {
  const auto& strides = x.strides();
  return {x.data(), strides[0], strides[1], strides[2], strides[3]};
}
Input In(const Operand& x) { return View<const void*>(x); }
Output Out(Operand& x) { return View<void*>(x); }

Type TypeOf(Element element) {
  return element == Element::kFloat32    ? Type::kFloat32
         : element == Element::kBFloat16 ? Type::kBFloat16
                                         : Type::kFloat16;
}

// The parts in their order, from whatever holds the five kinds.
template <class Get>
Parts MakeParts(const AttentionCase& c, const Get& get) {
  const auto& s = c.shape;
  Parts parts;
  const auto add = [&](std::string name, int kind, int64_t l, int64_t H, int64_t D) {
    parts.push_back({std::move(name), get(kind, l), s.B, H, LevelLength(s.T, s.s, l), D, l});
  };
  add("out", 0, 0, s.H, s.Dv);
  add("lse", 1, 0, s.H, 1);
  for (int64_t l = 0; l < s.L; ++l) add(Concat("d_queries[", l, "]"), 2, l, s.H, s.D);
  for (int64_t l = 0; l < s.L; ++l) add(Concat("d_keys[", l, "]"), 3, l, s.Hkv, s.D);
  add("d_value", 4, 0, s.Hkv, s.Dv);
  return parts;
}

}  // namespace

float AttentionCase::Scale() const {
  return scale.value_or(1.0F / std::sqrt(static_cast<float>(shape.D)));
}

int64_t AttentionCase::Length(int64_t b) const {
  return lengths.empty() ? shape.T : std::clamp<int64_t>(lengths[b], 0, shape.T);
}

std::string AttentionCase::ToString() const {
  std::string line = Concat(shape.ToString(), " causal=", causal, " scale=", Scale(), " ",
                            NameOf(element), " seed=", seed, " guard=", guard, " lengths=");
  for (const int64_t length : lengths) line += Concat(length, ",");
  for (const auto* list : {&layouts, &out_layouts}) {
    line += list == &layouts ? " in=" : " out=";
    for (const Layout layout : *list) line += Concat(NameOf(layout), ",");
  }
  return line;
}

AttentionTensors MakeTensors(const AttentionCase& c) {
  const auto& s = c.shape;
  AttentionTensors x{MakeLevels(c, s.H, c.layouts[0]), MakeLevels(c, s.Hkv, c.layouts[1]),
                     MakeOperand(c, s.Hkv, 0, s.Dv, c.layouts[2]),
                     MakeOperand(c, s.H, 0, s.Dv, c.layouts[3])};
  Random random({c.seed});
  for (Operand& q : x.queries) FillRandom(q, random);
  for (Operand& k : x.keys) FillRandom(k, random);
  FillRandom(x.value, random);
  FillRandom(x.d_out, random);
  return x;
}

void AttentionTensors::FillPadding(const AttentionCase& c, double filling) {
  const auto& s = c.shape;
  for (int64_t b = 0; b < s.B; ++b) {
    const auto fill = [&](Operand& operand, int64_t l) {
      for (int64_t t = LevelLength(c.Length(b), s.s, l); t < LevelLength(s.T, s.s, l); ++t)
        operand.FillRow(b, t, filling);
    };
    for (int64_t l = 0; l < s.L; ++l) {
      fill(queries[l], l);
      fill(keys[l], l);
    }
    fill(value, 0);
    fill(d_out, 0);
  }
}

Parts RunKernels(const AttentionCase& c, const AttentionTensors& x, const Parallel& parallel) {
  const auto& s = c.shape;
  std::vector<Input> queries, keys;
  for (const Operand& q : x.queries) queries.push_back(In(q));
  for (const Operand& k : x.keys) keys.push_back(In(k));
  AttentionParams params;
  params.B = s.B;
  params.H = s.H;
  params.Hkv = s.Hkv;
  params.T = s.T;
  params.D = s.D;
  params.Dv = s.Dv;
  params.L = static_cast<int>(s.L);
  params.stride = s.s;
  params.scale = c.Scale();
  params.causal = c.causal;
  params.type = TypeOf(c.element);
  params.lengths = c.lengths.empty() ? nullptr : c.lengths.data();
  params.queries = queries.data();
  params.keys = keys.data();
  params.value = In(x.value);

  Operand out = MakeOperand(c, s.H, 0, s.Dv, c.out_layouts[0]);
  Operand lse({1, s.B, s.H, s.T}, Element::kFloat32, Layout::kContiguous, c.guard);
  AttentionForward(params, Out(out), static_cast<float*>(lse.data()), parallel);
  EXPECT_EQ(out.Trespass(), "") << "out of AttentionForward";
  EXPECT_EQ(lse.Trespass(), "") << "lse";

  std::vector<Operand> d_queries = MakeLevels(c, s.H, c.out_layouts[1]),
                       d_keys = MakeLevels(c, s.Hkv, c.out_layouts[2]);
  Operand d_value = MakeOperand(c, s.Hkv, 0, s.Dv, c.out_layouts[3]);
  std::vector<Output> d_queries_out, d_keys_out;
  for (Operand& d : d_queries) d_queries_out.push_back(Out(d));
  for (Operand& d : d_keys) d_keys_out.push_back(Out(d));
  AttentionBackward(params, In(out), static_cast<const float*>(lse.data()), In(x.d_out),
                    {d_queries_out.data(), d_keys_out.data(), Out(d_value)}, parallel);
  for (const auto* levels : {&d_queries, &d_keys}) {
    for (const Operand& d : *levels)
      EXPECT_EQ(d.Trespass(), "") << (levels == &d_queries ? "d_queries" : "d_keys");
  }
  EXPECT_EQ(d_value.Trespass(), "") << "d_value";
  return MakeParts(c, [&](int kind, int64_t l) {
    return kind == 0   ? out.Get()
           : kind == 1 ? lse.Get()
           : kind == 2 ? d_queries[l].Get()
           : kind == 3 ? d_keys[l].Get()
                       : d_value.Get();
  });
}

Expected RunReference(const AttentionCase& c, const AttentionTensors& x) {
  const auto& s = c.shape;
  reference::Attention a{.B = s.B, .H = s.H, .Hkv = s.Hkv, .T = s.T, .D = s.D, .Dv = s.Dv};
  a.L = s.L;
  a.stride = s.s;
  a.scale = static_cast<double>(c.Scale());
  a.causal = c.causal;
  a.lengths = c.lengths;
  for (const Operand& q : x.queries) a.queries.push_back(q.Get());
  for (const Operand& k : x.keys) a.keys.push_back(k.Get());
  a.value = x.value.Get();
  const std::vector<double> d_out = x.d_out.Get();
  const auto parts = [&](const reference::AttentionOutput& output,
                         const reference::AttentionGradients& d) {
    return MakeParts(c, [&](int kind, int64_t l) {
      return kind == 0   ? output.out
             : kind == 1 ? output.lse
             : kind == 2 ? d.queries[l]
             : kind == 3 ? d.keys[l]
                         : d.value;
    });
  };
  const reference::AttentionOutput output = reference::AttentionForward(a);
  const reference::AttentionGradients d = reference::AttentionBackward(a, d_out);
  const AttentionBounds bounds = BoundsOf(a, d_out, output, d, c.element);
  return {parts(output, d), parts(bounds.output, bounds.gradients)};
}

void ExpectWithin(const Parts& got, const Expected& expected) {
  ASSERT_EQ(got.size(), expected.want.size());
  for (size_t p = 0; p < got.size(); ++p) {
    std::vector<double> values = got[p].values, want = expected.want[p].values;
    ASSERT_EQ(values.size(), want.size());
    // A row without keys has lse = -inf, which no difference is taken of.
    for (size_t i = 0; i < want.size() && got[p].name == "lse"; ++i) {
      if (values[i] == -INFINITY && want[i] == -INFINITY) values[i] = want[i] = 0;
    }
    const testing::Comparison same = testing::Compare(values, want, expected.bounds[p].values);
    EXPECT_TRUE(same) << got[p].name << ": " << same.message;
  }
}

void ExpectSameBits(const Parts& got, const Parts& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t p = 0; p < got.size(); ++p) {
    const testing::Comparison same = testing::CompareBits(got[p].values, want[p].values);
    EXPECT_TRUE(same) << got[p].name << ": " << same.message;
  }
}

Parts FirstTokens(const AttentionCase& c, const Parts& parts, int64_t b, int64_t tokens) {
  Parts first;
  for (const Part& part : parts) {
    Part cut = part;
    cut.values.clear();
    cut.T = LevelLength(tokens, c.shape.s, part.level);
    for (int64_t sequence = 0; sequence < part.B; ++sequence) {
      if (b >= 0 && sequence != b) continue;
      for (int64_t h = 0; h < part.H; ++h) {
        const auto begin = part.values.begin() + (sequence * part.H + h) * part.T * part.D;
        cut.values.insert(cut.values.end(), begin, begin + cut.T * part.D);
      }
    }
    cut.B = b >= 0 ? 1 : part.B;
    first.push_back(std::move(cut));
  }
  return first;
}

void ForEachTarget(const std::function<void()>& body) {
  const char* forced = std::getenv("HKT_TARGET");
  const std::vector<std::string> targets =
      forced != nullptr ? std::vector<std::string>{forced} : UsableTargets();
  for (const std::string& target : targets) {
    SCOPED_TRACE("HKT_TARGET=" + target);
    SetTarget(target);
    body();
    if (::testing::Test::HasFailure()) break;
  }
  SetTarget(forced != nullptr ? forced : "");
}

void ForEachTargetAndPoison(const std::function<void()>& body) {
  ForEachTarget([&] {
    const bool before = ScratchPoison();
    for (const bool poison : {true, false}) {
      SCOPED_TRACE(Concat("HKT_POISON_SCRATCH=", poison));
      SetScratchPoison(poison);
      body();
    }
    SetScratchPoison(before);
  });
}

bool EqualsReference(const AttentionCase& c, const std::string& repeat) {
  return EqualsReference(c, MakeTensors(c), repeat);
}

bool EqualsReference(const AttentionCase& c, const AttentionTensors& x, const std::string& repeat) {
  const Expected expected = RunReference(c, x);
  ForEachTarget([&] {
    SCOPED_TRACE(Concat(repeat, "HKT_TARGET=", ChosenTarget(), " ", c.ToString()));
    const bool before = ScratchPoison();
    SetScratchPoison(true);
    const Parts poisoned = RunKernels(c, x);
    SetScratchPoison(false);
    const Parts plain = RunKernels(c, x);
    SetScratchPoison(before);
    ExpectWithin(plain, expected);
    SCOPED_TRACE("scratch memory poisoned, against not");
    ExpectSameBits(poisoned, plain);
  });
  return !::testing::Test::HasFailure();
}

}  // namespace hkt::kernels
