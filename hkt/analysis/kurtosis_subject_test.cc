// The subject "kurtosis": on tokens of known law through a layer of one level, and on pyramids.

#include "hkt/analysis/kurtosis_subject.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mm.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "hkt/analysis/analysis_test_util.h"
#include "hkt/analysis/sample_test_util.h"

namespace hkt::analysis {
namespace {

Json Analyse(const Layer& layer, int64_t sequences, const std::function<at::Tensor()>& tokens,
             int64_t keep_bytes = int64_t{1} << 30) {
  const auto subject = MakeKurtosisSubject({layer}, 2000, 1, keep_bytes);
  for (int64_t n = 0; n < sequences; ++n) {
    const at::Tensor x = tokens();
    subject->Visit({.index = n, .length = x.size(0), .inputs = {x}}, {Pyramid(layer, x)});
  }
  return subject->Finish();
}

// What does not fit is left out of every figure that needs whole sequences, and nothing else of
// them.
TEST(KurtosisSubject, SequencesBeyondTheMemoryAreLeftOut) {
  const Layer layer = RandomLayer({.d = 6, .L = 2}, 2);
  const auto tokens = [](uint64_t seed) {
    return [sampler = std::make_shared<Sampler>(seed)] { return sampler->Normal({50, 6}); };
  };
  const int64_t a_sequence = 50 * 6 * 2 * 8;  // T d L doubles
  const Json part = Analyse(layer, 12, tokens(1), 5 * a_sequence + 100);
  const Json five = Analyse(layer, 5, tokens(1));
  EXPECT_EQ(part["levels"], five["levels"]);
  EXPECT_EQ(part["forms"], five["forms"]);
  EXPECT_EQ(part["sequences"], 12);
  EXPECT_NE(part["scores"], five["scores"]);
}

// Independent elliptical tokens at level 0: gamma, eta and the scores' kurtosis are closed forms.
TEST(KurtosisSubject, EllipticalTokens) {
  Sampler sampler(1);
  const Layer layer = RandomLayer({.d = 6, .L = 1}, 2);
  const at::Tensor mix = sampler.Normal({6, 6});
  for (const bool heavy : {false, true}) {
    const Json json = Analyse(layer, 200, [&] {
      return at::mm(heavy ? sampler.Mixture(500, 6) : sampler.Normal({500, 6}), mix);
    });
    const double factor = heavy ? 2 : 1;
    const Json& level = json["levels"][0];
    EXPECT_EQ(level["gaussian"], 48.0);
    EXPECT_NEAR(level["kappa"].get<double>(), 48 * factor, 5 * level["bootstrap_se"].get<double>());
    const Json& form = json["forms"][0];
    EXPECT_NEAR(1 + form["eta"].get<double>(), factor, 0.06 * factor);
    EXPECT_LE(form["same_cell_second_moment"].get<double>(), form["same_cell_bound"].get<double>());
    EXPECT_TRUE(Near(form["second_moment"], form["second_moment_predicted"], 0.05));
    EXPECT_LE(form["second_moment"].get<double>(), form["second_moment_bound"].get<double>());
    const Json& score = json["scores"][0];
    EXPECT_TRUE(Near(score["pooled"], score["independent_elliptical"], 0.2));
    EXPECT_GT(score["kurtosis"].get<double>(), 3);
    EXPECT_EQ(score["random_weights"], 3 + 6.0 / 6);
    EXPECT_EQ(json["scores"][1]["level"], nullptr);  // the fused score is that of the one level
    EXPECT_EQ(json["scores"][1]["kurtosis"], score["kurtosis"]);
  }
}

// Behind convolution, LayerNorm and GELU laws are not elliptical: gamma and eta are both reported
// and need not agree, and the bounds of any law hold.
TEST(KurtosisSubject, PyramidsKeepTheBounds) {
  Sampler sampler(3);
  const Layer layer = RandomLayer({.d = 6, .H = 2}, 4);
  const Json json = Analyse(layer, 70, [&] { return sampler.Normal({90, 6}); });
  ASSERT_EQ(json["forms"].size(), 6u);
  for (const Json& form : json["forms"]) {
    EXPECT_LE(form["same_cell_second_moment"].get<double>(), form["same_cell_bound"].get<double>());
    EXPECT_LE(form["second_moment"].get<double>(), form["second_moment_bound"].get<double>());
  }
  EXPECT_EQ(json["scores"].size(), 8u);
  EXPECT_EQ(json["levels"][2]["rows"], 70 * 23);
  EXPECT_NEAR(json["levels"][1]["same_cell"].get<double>(), 3.0 / 91, 1e-15);
  EXPECT_EQ(json["levels"][2]["too_few"], false);
}

// Sequences of unlike variance: each is Gaussian, pooled they are a scale mixture.
TEST(KurtosisSubject, PooledIsNotTheMean) {
  Sampler sampler(5);
  const Layer layer = RandomLayer({.d = 16, .L = 1}, 6);
  int64_t n = 0;
  const Json json = Analyse(layer, 100, [&] {
    return sampler.Normal({200, 16}) * (n++ % 2 == 0 ? 1.0 : 3.0);
  });
  EXPECT_GT(json["scores"][0]["pooled"].get<double>(),
            1.5 * json["scores"][0]["kurtosis"].get<double>());
}

TEST(KurtosisSubject, BiasesAreNoPartOfCentredRows) {
  Sampler sampler(7);
  const Json json = Analyse(RandomLayer({.d = 6, .bias = true}, 8), 64, [&] {
    return sampler.Normal({60, 6});
  });
  EXPECT_EQ(json["levels"][0]["width"], 6);
  EXPECT_TRUE(json["forms"][0]["second_moment_bound"].is_null());
  EXPECT_LE(json["forms"][0]["same_cell_second_moment"].get<double>(),
            json["forms"][0]["same_cell_bound"].get<double>());
}

}  // namespace
}  // namespace hkt::analysis
