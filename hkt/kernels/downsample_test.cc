#include "hkt/kernels/downsample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hkt/base/dims.h"
#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/kernels/downsample_test_util.h"
#include "hkt/kernels/reference/downsample.h"
#include "hkt/kernels/targets.h"
#include "hkt/testing/compare.h"
#include "hkt/testing/operand.h"

namespace hkt::kernels {
namespace {

using reference::Vector;
using testing::Element;
using testing::Layout;
using testing::Operand;

constexpr float kEps = 2e-4F;  // not the default
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct Shape {
  int64_t B = 1, T = 1, d = 8, k = 3, stride = 2;
  Element element = Element::kFloat32;
  Layout x = Layout::kContiguous, out = Layout::kContiguous, d_out = Layout::kContiguous,
         d_x = Layout::kContiguous;
  bool only_depthwise = false;

  int64_t Tl() const { return CeilDiv(T, stride); }
  std::string Name() const {
    return Concat("B = ", B, ", T = ", T, ", d = ", d, ", k = ", k, ", s = ", stride, ", ",
                  NameOf(element), ", x ", NameOf(x), ", out ", NameOf(out), ", d_out ",
                  NameOf(d_out), ", d_x ", NameOf(d_x), only_depthwise ? ", depthwise alone" : "",
                  ", target ", ChosenTarget());
  }
};

Type TypeOf(Element element) {
  return element == Element::kFloat32    ? Type::kFloat32
         : element == Element::kBFloat16 ? Type::kBFloat16
                                         : Type::kFloat16;
}

template <class Strided, class Source>
Strided View(Source& x) {
  const auto& strides = x.strides();
  return {x.data(), strides[0], strides[1], strides[2], strides[3]};
}

// Every result, widened to double.
struct Results {
  Vector out;
  reference::DownsampleGradients gradients;
};

constexpr struct {
  const char* name;
  Vector reference::DownsampleGradients::*member;
} kGradients[] = {
    {"d_x", &reference::DownsampleGradients::x},
    {"d_depthwise_weight", &reference::DownsampleGradients::depthwise_weight},
    {"d_depthwise_bias", &reference::DownsampleGradients::depthwise_bias},
    {"d_pointwise_weight", &reference::DownsampleGradients::pointwise_weight},
    {"d_pointwise_bias", &reference::DownsampleGradients::pointwise_bias},
    {"d_norm_weight", &reference::DownsampleGradients::norm_weight},
    {"d_norm_bias", &reference::DownsampleGradients::norm_bias},
};

std::vector<float> Floats(Random& random, int64_t n, double size, double around = 0) {
  std::vector<float> values(n);
  for (float& value : values)
    value = static_cast<float>(around + size * (2 * random.Uniform() - 1));
  return values;
}

Vector Widen(const std::vector<float>& values) { return Vector(values.begin(), values.end()); }

// Inputs for one shape. Weights have the sizes that training starts from, so that LayerNorm sees
// sums of the order of one.
class Case {
 public:
  explicit Case(const Shape& shape, uint64_t seed = 1)
      : shape_(shape),
        random_({seed, static_cast<uint64_t>(shape.T), static_cast<uint64_t>(shape.d)}),
        x_({shape.B, 1, shape.T, shape.d}, shape.element, shape.x),
        d_out_({shape.B, 1, shape.Tl(), shape.d}, shape.element, shape.d_out),
        depthwise_weight_(Floats(random_, shape.d * shape.k, 1)),
        depthwise_bias_(Floats(random_, shape.d, 0.5)),
        pointwise_weight_(
            Floats(random_, shape.d * shape.d, std::sqrt(3 / static_cast<double>(shape.d)))),
        pointwise_bias_(Floats(random_, shape.d, 0.5)),
        norm_weight_(Floats(random_, shape.d, 0.5, 1)),
        norm_bias_(Floats(random_, shape.d, 0.5)) {
    x_.Set(Widen(Floats(random_, shape.B * shape.T * shape.d, 1.5)));
    d_out_.Set(Widen(Floats(random_, shape.B * shape.Tl() * shape.d, 1)));
  }

  const Shape& shape() const { return shape_; }
  Operand& x() { return x_; }

  DownsampleParams Params() {
    DownsampleParams p;
    p.B = shape_.B;
    p.T = shape_.T;
    p.d = shape_.d;
    p.k = shape_.k;
    p.stride = shape_.stride;
    p.eps = kEps;
    p.type = TypeOf(shape_.element);
    p.x = View<Input>(std::as_const(x_));
    p.depthwise_weight = depthwise_weight_.data();
    p.depthwise_bias = depthwise_bias_.data();
    if (shape_.only_depthwise) return p;
    p.pointwise_weight = pointwise_weight_.data();
    p.pointwise_bias = pointwise_bias_.data();
    p.norm_weight = norm_weight_.data();
    p.norm_bias = norm_bias_.data();
    return p;
  }

  // The kernel's results. Sequence b alone with `alone` >= 0.
  Results Run(const Parallel& parallel = {}, int64_t alone = -1) {
    DownsampleParams p = Params();
    Input d_out = View<Input>(std::as_const(d_out_));
    if (alone >= 0) {
      p.B = 1;
      p.x = From(p.x, alone);
      d_out = From(d_out, alone);
    }
    const int64_t d = p.d;
    Operand out({p.B, 1, shape_.Tl(), d}, shape_.element, shape_.out);
    Operand d_x({p.B, 1, p.T, d}, shape_.element, shape_.d_x);
    std::vector<float> weights[] = {Guarded(d * p.k), Guarded(d), Guarded(d * d),
                                    Guarded(d),       Guarded(d), Guarded(d)};
    if (shape_.only_depthwise) {  // nothing is written to the others
      for (size_t i = 2; i < 6; ++i) weights[i] = Guarded(0);
    }
    DownsampleForward(p, View<Output>(out), parallel);
    DownsampleBackward(p, d_out,
                       {View<Output>(d_x), weights[0].data(), weights[1].data(), weights[2].data(),
                        weights[3].data(), weights[4].data(), weights[5].data()},
                       parallel);
    EXPECT_EQ(out.Trespass(), "") << shape_.Name();
    EXPECT_EQ(d_x.Trespass(), "") << shape_.Name();
    for (std::vector<float>& gradient : weights) {
      for (int i = 0; i < kGuard; ++i) {
        EXPECT_TRUE(std::isnan(gradient.back())) << shape_.Name();
        gradient.pop_back();
      }
    }
    return {out.Get(),
            {d_x.Get(), Widen(weights[0]), Widen(weights[1]), Widen(weights[2]), Widen(weights[3]),
             Widen(weights[4]), Widen(weights[5])}};
  }

  void ExpectReference(const Parallel& parallel = {}) {
    reference::Downsample p;
    p.B = shape_.B;
    p.T = shape_.T;
    p.d = shape_.d;
    p.k = shape_.k;
    p.stride = shape_.stride;
    p.eps = kEps;
    p.x = x_.Get();
    p.depthwise_weight = Widen(depthwise_weight_);
    p.depthwise_bias = Widen(depthwise_bias_);
    if (!shape_.only_depthwise) {
      p.pointwise_weight = Widen(pointwise_weight_);
      p.pointwise_bias = Widen(pointwise_bias_);
      p.norm_weight = Widen(norm_weight_);
      p.norm_bias = Widen(norm_bias_);
    }
    const Vector d_out = d_out_.Get();
    const Results got = Run(parallel);
    const DownsampleBounds bounds = ErrorBounds(p, d_out, shape_.element);
    Expect("out", got.out, reference::DownsampleForward(p), bounds.out);
    const reference::DownsampleGradients want = reference::DownsampleBackward(p, d_out);
    for (const auto& [name, member] : kGradients)
      Expect(name, got.gradients.*member, want.*member, bounds.gradients.*member);
  }

 private:
  static constexpr int kGuard = 16;

  static std::vector<float> Guarded(int64_t n) { return std::vector<float>(n + kGuard, kNan); }

  Input From(Input tensor, int64_t b) const {
    tensor.data =
        static_cast<const char*>(tensor.data) + b * tensor.batch * BytesOf(shape_.element);
    return tensor;
  }

  // In units of each element's own bound.
  void Expect(const char* name, Vector got, Vector want, const Vector& bounds) const {
    ASSERT_EQ(got.size(), bounds.size()) << name;
    for (size_t i = 0; i < bounds.size(); ++i) {
      // A bound of 0, where no term exists, or of NaN allows no difference.
      const double unit = bounds[i] > 0 ? bounds[i] : std::numeric_limits<double>::min();
      got[i] /= unit;
      want[i] /= unit;
    }
    const testing::Comparison result = testing::Compare(got, want, 1);
    EXPECT_TRUE(result.ok) << name << " in units of the bounds, " << shape_.Name() << ": "
                           << result.message;
  }

  Shape shape_;
  Random random_;
  Operand x_, d_out_;
  std::vector<float> depthwise_weight_, depthwise_bias_, pointwise_weight_, pointwise_bias_,
      norm_weight_, norm_bias_;
};

void ExpectSameBits(const Results& got, const Results& want, const std::string& what) {
  const testing::Comparison out = testing::CompareBits(got.out, want.out);
  EXPECT_TRUE(out.ok) << "out, " << what << ": " << out.message;
  for (const auto& [name, member] : kGradients) {
    const testing::Comparison result =
        testing::CompareBits(got.gradients.*member, want.gradients.*member);
    EXPECT_TRUE(result.ok) << name << ", " << what << ": " << result.message;
  }
}

// On every target, with scratch memory full of NaN.
class Downsample : public ::testing::TestWithParam<std::string> {
 protected:
  Downsample() {
    SetTarget(GetParam());
    SetScratchPoison(true);
  }
  ~Downsample() override {
    SetTarget("");
    SetScratchPoison(false);
  }
};

INSTANTIATE_TEST_SUITE_P(Target, Downsample, ::testing::ValuesIn(UsableTargets()),
                         [](const auto& info) { return info.param; });

TEST_P(Downsample, EqualsReferenceAtEveryWidth) {
  for (const int64_t d : {1, 2, 3, 8, 15, 16, 17, 20, 32, 48, 59, 64, 65, 100, 128})
    Case({.B = 2, .T = 23, .d = d}).ExpectReference();
}

TEST_P(Downsample, EqualsReferenceAtEveryKernelAndStride) {
  for (const int64_t k : {1, 2, 3, 4, 5, 6, 9, 30}) {
    for (const int64_t stride : {1, 2, 3, 4, 5, 7, 40}) {
      for (const int64_t T : {29, 41})
        Case({.B = 1, .T = T, .d = 16, .k = k, .stride = stride}).ExpectReference();
    }
  }
}

TEST_P(Downsample, EqualsReferenceAtEveryLength) {
  for (int64_t T = 1; T <= 40; ++T) Case({.B = 2, .T = T, .d = 4}).ExpectReference();
  // Around one and two blocks of the forward (96 outputs) and of the backward pass (95 and 94).
  for (const int64_t T : {187, 188, 189, 190, 191, 192, 193, 194, 379, 380, 381, 382, 383, 385})
    Case({.B = 1, .T = T, .d = 4}).ExpectReference();
  for (const int64_t T : {93, 94, 95, 96, 97, 188, 189})
    Case({.B = 1, .T = T, .d = 4, .stride = 1}).ExpectReference();
}

TEST_P(Downsample, DepthwiseAloneEqualsReference) {
  for (const int64_t d : {1, 3, 15, 16, 17, 33, 64}) {
    for (const int64_t k : {1, 2, 3, 5, 9}) {
      for (const int64_t T : {1, 2, 29, 95, 97, 300}) {
        Case({.B = 2, .T = T, .d = d, .k = k, .stride = 1, .only_depthwise = true})
            .ExpectReference();
        if (HasFailure()) return;
      }
    }
    Case({.B = 2, .T = 41, .d = d, .k = 3, .stride = 3, .only_depthwise = true}).ExpectReference();
  }
  Case({.B = 9, .T = 900, .d = 8, .stride = 1, .only_depthwise = true}).ExpectReference();
}

TEST_P(Downsample, EqualsReferenceInSeveralGroups) {
  // Hundreds of rows of output, in several groups of weight gradients, of whole sequences or parts.
  Case({.B = 3, .T = 900, .d = 8}).ExpectReference();
  Case({.B = 700, .T = 3, .d = 4}).ExpectReference();
  Case({.B = 1, .T = 600, .d = 3, .k = 100, .stride = 1}).ExpectReference();  // a wide halo
}

TEST_P(Downsample, EqualsReferenceWithoutPoison) {
  SetScratchPoison(false);
  Case({.B = 2, .T = 201, .d = 20}).ExpectReference();
}

// The layout for an output where the input has `layout`.
Layout OutputLayout(Layout layout) {
  const bool overlaps = std::find(testing::kLayouts, testing::kLayouts + testing::kOutputLayouts,
                                  layout) == testing::kLayouts + testing::kOutputLayouts;
  return overlaps ? Layout::kContiguous : layout;
}

constexpr Element kElements[] = {Element::kFloat32, Element::kBFloat16, Element::kFloat16};

TEST_P(Downsample, EqualsReferenceInEveryTypeAndLayout) {
  for (const Element element : kElements) {
    for (const Layout layout : testing::kLayouts) {
      const Layout out = OutputLayout(layout);
      Case({2, 37, 5, 3, 2, element, layout, out, layout, out}).ExpectReference();
      // Rows of whole vectors, in blocks that begin after the first token: the path without copies.
      Case({2, 207, 32, 3, 2, element, layout, out, layout, out}).ExpectReference();
      Case({2, 207, 32, 3, 1, element, layout, out, layout, out, true}).ExpectReference();
      Case({2, 37, 5, 3, 1, element, layout, out, layout, out, true}).ExpectReference();
    }
  }
}

TEST_P(Downsample, EqualsReferenceAtRandom) {
  Random random({5});
  const auto layout = [&](uint64_t most) { return testing::kLayouts[random.Below(most)]; };
  for (uint64_t i = 0; i < 200; ++i) {
    Shape shape{.B = random.Between(1, 3),
                .T = random.Between(1, 60),
                .d = random.Between(1, 70),
                .k = random.Between(1, 7),
                .stride = random.Between(1, 5),
                .element = kElements[random.Below(3)],
                .x = layout(std::size(testing::kLayouts)),
                .out = layout(testing::kOutputLayouts),
                .d_out = layout(std::size(testing::kLayouts)),
                .d_x = layout(testing::kOutputLayouts)};
    Case(shape, i).ExpectReference();
    if (HasFailure()) return;
  }
}

TEST_P(Downsample, SameBitsForEveryNumberOfWorkers) {
  const auto reversed = [](int64_t count, const std::function<void(int64_t)>& body) {
    for (int64_t worker = count; worker-- > 0;) body(worker);
  };
  const auto threads = [](int64_t count, const std::function<void(int64_t)>& body) {
    std::vector<std::thread> running;
    for (int64_t worker = 0; worker < count; ++worker) running.emplace_back(body, worker);
    for (std::thread& thread : running) thread.join();
  };
  for (const Shape& shape :
       {Shape{.B = 5, .T = 431, .d = 20}, Shape{.B = 2, .T = 1300, .d = 33},
        Shape{.B = 1, .T = 1, .d = 3},
        Shape{.B = 3, .T = 700, .d = 20, .stride = 1, .only_depthwise = true}}) {
    Case test(shape);
    const Results want = test.Run();
    for (const int64_t workers : {1, 2, 3, 7, 500}) {
      const std::string name = Concat(workers, " workers, ", shape.Name());
      ExpectSameBits(test.Run({.workers = workers}), want, "serial, " + name);
      ExpectSameBits(test.Run({workers, reversed}), want, "reversed, " + name);
      ExpectSameBits(test.Run({workers, threads}), want, "threads, " + name);
    }
  }
}

TEST_P(Downsample, SequenceAloneHasTheSameBits) {
  for (const int64_t d : {20, 32}) {
    Case test({.B = 7, .T = 205, .d = d});
    const Results together = test.Run();
    for (int64_t b = 0; b < 7; ++b) {
      const Results alone = test.Run({}, b);
      const auto of = [b](const Vector& all) {
        const auto size = static_cast<int64_t>(all.size()) / 7;
        return Vector(all.begin() + b * size, all.begin() + (b + 1) * size);
      };
      EXPECT_TRUE(testing::CompareBits(alone.out, of(together.out)).ok);
      EXPECT_TRUE(testing::CompareBits(alone.gradients.x, of(together.gradients.x)).ok);
    }
  }
}

TEST_P(Downsample, NanStaysWhereItsTokenIsRead) {
  for (const int64_t stride : {1, 2, 4}) {
    for (const int64_t token : {0, 5, 250, 388, 399}) {
      Case test({.B = 2, .T = 400, .d = 32, .stride = stride});
      const Results clean = test.Run();
      Vector x = test.x().Get();
      x[(400 + token) * 32 + 3] = kNan;
      test.x().Set(x);
      const Results got = test.Run();
      const int64_t Tl = test.shape().Tl(), d = 32;
      const auto reads = [&](int64_t b, int64_t tau) {
        return b == 1 && tau * stride - 2 <= token && token <= tau * stride;
      };
      for (int64_t b = 0; b < 2; ++b) {
        for (int64_t tau = 0; tau < Tl; ++tau) {
          for (int64_t c = 0; c < d; ++c) {
            const int64_t i = (b * Tl + tau) * d + c;
            if (reads(b, tau)) {
              ASSERT_TRUE(std::isnan(got.out[i])) << token << ' ' << tau << ' ' << c;
            } else {
              ASSERT_EQ(got.out[i], clean.out[i]) << token << ' ' << tau << ' ' << c;
            }
          }
        }
        for (int64_t t = 0; t < 400; ++t) {
          bool spoiled = false;  // an output that reads the token reads t too
          for (int64_t tau = CeilDiv(t, stride); tau < Tl && tau * stride - 2 <= t; ++tau)
            spoiled = spoiled || reads(b, tau);
          for (int64_t c = 0; c < d; ++c) {
            const int64_t i = (b * 400 + t) * d + c;
            if (spoiled) {
              ASSERT_TRUE(std::isnan(got.gradients.x[i])) << token << ' ' << t << ' ' << c;
            } else {
              ASSERT_EQ(got.gradients.x[i], clean.gradients.x[i]) << token << ' ' << t;
            }
          }
        }
      }
    }
  }
}

TEST_P(Downsample, NothingInGivesZeroGradients) {
  for (const Shape& shape : {Shape{.B = 0, .T = 9}, Shape{.B = 3, .T = 0},
                             Shape{.B = 0, .T = 9, .only_depthwise = true}}) {
    const Results got = Case(shape).Run();
    EXPECT_TRUE(got.out.empty() && got.gradients.x.empty());
    for (const auto& [name, member] : kGradients) {
      for (const double value : got.gradients.*member) EXPECT_EQ(value, 0) << name;
    }
    EXPECT_EQ(got.gradients.pointwise_weight.size(), shape.only_depthwise ? 0 : 64);
  }
}

}  // namespace
}  // namespace hkt::kernels
