// The classifier: names and sizes of the five models, padding, short and empty batches, gradients,
// errors.

#include "hkt/nn/classifier.h"

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "hkt/base/config.h"
#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/base/warn.h"
#include "hkt/nn/nn_test_util.h"
#include "hkt/testing/error_bound.h"

namespace hkt::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ClassifierTest : public ::testing::Test {
 protected:
  ClassifierTest() {
    SetWarningSink([](const std::string&) {});
  }
  ~ClassifierTest() override { SetWarningSink(nullptr); }
};

ClassifierOptions SmallOptions() {
  ClassifierOptions o;
  o.attention = {.d_model = 8, .heads = 2, .kv_heads = 2, .levels = 3};
  o.d_ff = 12;
  o.vocabulary = 16;
  o.seq_len = 64;
  o.classes = 5;
  o.dropout = 0;
  return o;
}

Classifier MakeModel(const ClassifierOptions& options, at::ScalarType type = at::kDouble) {
  Classifier model(options);
  Randomize(*model, 5, type);
  model->eval();
  return model;
}

at::Tensor Ids(int64_t B, int64_t T, int64_t vocabulary, uint64_t seed) {
  Random random({seed, 78});
  at::Tensor ids = at::zeros({B, T}, at::kLong);
  int64_t* data = ids.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < B * T; ++i) data[i] = random.Between(0, vocabulary - 1);
  return ids;
}

int64_t Count(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& p : module.parameters()) count += p.numel();
  return count;
}

TEST_F(ClassifierTest, ParametersOfHkt) {
  ClassifierOptions o = SmallOptions();
  o.layers = 1;
  o.attention.levels = 2;
  Classifier model(o);
  std::vector<std::string> lines;
  for (const auto& item : model->named_parameters())
    lines.push_back(Concat(item.key(), " ", item.value().sizes()));
  EXPECT_THAT(
      lines,
      ElementsAre(
          "embedding.weight [16, 8]", "position.weight [64, 8]",
          "blocks.0.attention_norm.weight [8]", "blocks.0.attention_norm.bias [8]",
          "blocks.0.attention.level_logits [2, 2]", "blocks.0.attention.gate_logits [2, 2]",
          "blocks.0.attention.query.0.weight [8, 8]", "blocks.0.attention.query.1.weight [8, 8]",
          "blocks.0.attention.key.0.weight [8, 8]", "blocks.0.attention.key.1.weight [8, 8]",
          "blocks.0.attention.value.weight [8, 8]", "blocks.0.attention.output.weight [8, 8]",
          "blocks.0.attention.output.bias [8]",
          "blocks.0.attention.downsample.1.depthwise.weight [8, 1, 3]",
          "blocks.0.attention.downsample.1.depthwise.bias [8]",
          "blocks.0.attention.downsample.1.pointwise.weight [8, 8]",
          "blocks.0.attention.downsample.1.pointwise.bias [8]",
          "blocks.0.attention.downsample.1.norm.weight [8]",
          "blocks.0.attention.downsample.1.norm.bias [8]",
          "blocks.0.attention.conv.0.depthwise.weight [8, 1, 3]",
          "blocks.0.attention.conv.0.depthwise.bias [8]",
          "blocks.0.attention.conv.0.pointwise.weight [8, 8]",
          "blocks.0.attention.conv.0.pointwise.bias [8]",
          "blocks.0.attention.conv.1.depthwise.weight [8, 1, 3]",
          "blocks.0.attention.conv.1.depthwise.bias [8]",
          "blocks.0.attention.conv.1.pointwise.weight [8, 8]",
          "blocks.0.attention.conv.1.pointwise.bias [8]", "blocks.0.ffn_norm.weight [8]",
          "blocks.0.ffn_norm.bias [8]", "blocks.0.ffn.0.weight [12, 8]", "blocks.0.ffn.0.bias [12]",
          "blocks.0.ffn.1.weight [8, 12]", "blocks.0.ffn.1.bias [8]", "final_norm.weight [8]",
          "final_norm.bias [8]", "head.weight [5, 8]", "head.bias [5]"));
}

TEST_F(ClassifierTest, RotaryHasNoPositions) {
  ClassifierOptions o = SmallOptions();
  o.attention.rotary = true;
  o.seq_len = 0;
  Classifier model = MakeModel(o);
  EXPECT_FALSE(model->named_parameters().contains("position.weight"));
  EXPECT_EQ(Count(*model), ParameterCount(o));
  EXPECT_TRUE(AllFinite(model(Ids(2, 200, 16, 1))));  // and no limit on the length
}

TEST_F(ClassifierTest, ParameterCountIsTheModules) {
  int cases = 0;
  for (const int64_t levels : {1, 2, 4}) {
    for (int bits = 0; bits < 32; ++bits) {
      ClassifierOptions o = SmallOptions();
      o.attention.levels = levels;
      o.attention.hybrid = bits & 1;
      o.attention.psd = bits & 2;
      o.attention.rotary = bits & 4;
      o.attention.bias = bits & 8;
      o.attention.kernel_size = bits & 16 ? 5 : 3;
      o.attention.kv_heads = o.attention.psd ? 2 : 1;
      o.layers = 1 + levels % 2;
      Classifier model(o);
      EXPECT_EQ(ParameterCount(o), Count(*model)) << "levels " << levels << " bits " << bits;
      ++cases;
    }
  }
  EXPECT_EQ(cases, 96);
}

ClassifierOptions Resolved(Config config) {
  Resolve(config);
  return MakeClassifierOptions(config.model, 16, 512, 10);
}

TEST_F(ClassifierTest, TheFiveModels) {
  struct Expected {
    const char* model;
    int64_t levels;
    bool hybrid;
    int64_t parameters;  // of the default sizes, by hand from the table of docs/model.md
  };
  // d 64, ffn 128: a block without attention 16576 + 256 = 16832, around it 16*64 + 512*64 + 128 +
  // 650 = 34570. Attention: 3 levels 2*3 logits, (2*3 + 2) 64^2 + 64, pyramid 2 * 4544; gates 6 + 3
  // * 4416. One level: 2, 4 64^2 + 64; gates 2 + 4416.
  for (const Expected& e :
       {Expected{"hkt", 3, true, 34570 + 2 * (16832 + 6 + 32832 + 9088 + 6 + 13248)},
        Expected{"hkt-fusion", 3, false, 34570 + 2 * (16832 + 6 + 32832 + 9088)},
        Expected{"mha", 1, false, 34570 + 2 * (16832 + 2 + 16448)},
        Expected{"mha-conv", 1, true, 34570 + 2 * (16832 + 2 + 16448 + 2 + 4416)}}) {
    Config config;
    config.model.model = e.model;
    const ClassifierOptions o = Resolved(config);
    EXPECT_EQ(o.attention.levels, e.levels) << e.model;
    EXPECT_EQ(o.attention.hybrid, e.hybrid) << e.model;
    EXPECT_EQ(ParameterCount(o), e.parameters) << e.model;
    EXPECT_EQ(Count(*Classifier(o)), e.parameters) << e.model;
    EXPECT_EQ(o.attention.dropout, config.model.dropout);
  }
}

TEST_F(ClassifierTest, MhaWideHasHktsParameters) {
  for (const int64_t d : {16, 64, 128}) {
    for (const int64_t layers : {1, 2, 6}) {
      for (const bool rotary : {true, false}) {
        Config config;
        config.model.d_model = d;
        config.model.layers = layers;
        config.model.rotary = rotary;
        config.model.bias = rotary;
        config.model.model = "hkt";
        const auto hkt = static_cast<double>(ParameterCount(Resolved(config)));
        config.model.model = "mha-wide";
        const ClassifierOptions wide = Resolved(config);
        EXPECT_EQ(wide.attention.levels, 1);
        EXPECT_FALSE(wide.attention.hybrid);
        EXPECT_EQ(ParameterCount(wide), Count(*Classifier(wide)));
        EXPECT_LE(std::abs(static_cast<double>(ParameterCount(wide)) - hkt), 0.01 * hkt)
            << "d " << d << " layers " << layers << " rotary " << rotary;
      }
    }
  }
}

TEST_F(ClassifierTest, OptionsFollowTheConfiguration) {
  Config config;
  config.model.model = "hkt";
  config.model.levels = 4;
  config.model.stride = 3;
  config.model.kernel_size = 5;
  config.model.hybrid = false;
  config.model.bidirectional = true;
  config.model.rotary = true;
  config.model.bias = true;
  config.model.score_gain = 2;
  config.model.heads = 4;
  config.model.kv_heads = 2;
  config.model.d_ff = 100;
  config.model.dropout = 0.25;
  const ClassifierOptions o = Resolved(config);
  EXPECT_EQ(o.attention.levels, 4);
  EXPECT_EQ(o.attention.stride, 3);
  EXPECT_EQ(o.attention.kernel_size, 5);
  EXPECT_FALSE(o.attention.hybrid);
  EXPECT_FALSE(o.attention.causal);
  EXPECT_TRUE(o.attention.rotary);
  EXPECT_TRUE(o.attention.bias);
  EXPECT_EQ(o.attention.score_gain, 2);
  EXPECT_EQ(o.attention.heads, 4);
  EXPECT_EQ(o.attention.kv_heads, 2);
  EXPECT_EQ(o.d_ff, 100);
  EXPECT_EQ(o.dropout, 0.25);
  EXPECT_EQ(o.attention.dropout, 0.25);
  EXPECT_THROW(MakeClassifierOptions(ModelConfig{}, 16, 512, 10), UsageError);  // not resolved
}

TEST_F(ClassifierTest, StartsAtTheNormalsOfTheDesign) {
  ClassifierOptions o = SmallOptions();
  o.vocabulary = 200;
  o.seq_len = 300;
  Classifier model(o);
  for (const char* name : {"embedding.weight", "position.weight"}) {
    const at::Tensor weight = Parameter(*model, name).detach();
    const double n = static_cast<double>(weight.numel());
    // Five standard errors of the deviation and of the mean.
    EXPECT_NEAR(weight.std().item<double>(), 0.02, 5 * 0.02 / std::sqrt(2 * n)) << name;
    EXPECT_NEAR(weight.mean().item<double>(), 0, 5 * 0.02 / std::sqrt(n)) << name;
    EXPECT_GT(weight.select(0, 0).abs().max().item<double>(), 0) << name;  // no row is special
  }
}

// Pre-norm blocks, final norm, mean, head, written out with the dense layer of nn_test_util.h.
TEST_F(ClassifierTest, EqualsTheFormulas) {
  ClassifierOptions o = SmallOptions();
  Classifier model = MakeModel(o);
  const at::Tensor ids = Ids(2, 11, 16, 6);
  const auto parameter = [&](const std::string& name) { return Parameter(*model, name); };
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::layer_norm(x, {8}, parameter(name + ".weight"), parameter(name + ".bias"), 1e-5);
  };
  const auto linear = [&](const at::Tensor& x, const std::string& name) {
    return at::linear(x, parameter(name + ".weight"), parameter(name + ".bias"));
  };
  at::Tensor x = at::embedding(parameter("embedding.weight"), ids) +
                 parameter("position.weight").slice(0, 0, 11);
  for (const std::string block : {"blocks.0.", "blocks.1."}) {
    const auto* layer = model->named_modules()[block + "attention"]->as<HktAttentionImpl>();
    ASSERT_NE(layer, nullptr);
    x = x + DenseLayer(*layer, norm(x, block + "attention_norm"), RightPyramid(*layer));
    x = x + linear(at::gelu(linear(norm(x, block + "ffn_norm"), block + "ffn.0")), block + "ffn.1");
  }
  const at::Tensor want = linear(norm(x, "final_norm").mean(1), "head");
  // Sums of at most 12 terms in a chain of some 30 operations on numbers of order 10.
  EXPECT_TRUE(CompareTensors(model(ids), want,
                             1e4 * testing::UnitRoundoff(53) * want.abs().max().item<double>()));
}

TEST_F(ClassifierTest, MorePaddingGivesTheSameLogits) {
  for (const bool bidirectional : {false, true}) {
    ClassifierOptions o = SmallOptions();
    o.attention.causal = !bidirectional;
    Classifier model = MakeModel(o, at::kFloat);
    const at::Tensor ids = Ids(3, 20, 16, 2), lengths = at::tensor({20, 11, 1}, at::kLong);
    const at::Tensor want = model(ids, lengths);
    for (const int64_t more : {1, 3, 44}) {
      const at::Tensor padded = at::cat({ids, at::zeros({3, more}, at::kLong)}, 1);
      EXPECT_TRUE(CompareTensors(model(padded, lengths), want, 1e-5)) << more;
    }
    // Alone and without padding, too.
    EXPECT_TRUE(
        CompareTensors(model(ids.slice(0, 1, 2).slice(1, 0, 11)), want.slice(0, 1, 2), 1e-5));
    // What the padded ids are changes nothing, not even an id that is out of range.
    const at::Tensor valid = at::arange(20, at::kLong) < lengths.unsqueeze(1);
    EXPECT_TRUE(CompareTensorBits(model(at::where(valid, ids, -7), lengths), want));
  }
}

// The mean runs over valid positions: one token's logits do not depend on how often the padding is
// counted.
TEST_F(ClassifierTest, PoolsOverValidPositionsOnly) {
  ClassifierOptions o = SmallOptions();
  Classifier model = MakeModel(o);
  const at::Tensor ids = Ids(1, 9, 16, 3);
  const at::Tensor all = model(ids), full = model(ids, at::full({1}, 9, at::kLong));
  EXPECT_TRUE(
      CompareTensors(full, all, 1e4 * testing::UnitRoundoff(53) * all.abs().max().item<double>()));
  // No tokens: a mean of nothing is 0, the head gives its bias.
  const at::Tensor none = model(ids, at::zeros({1}, at::kLong));
  EXPECT_TRUE(CompareTensorBits(none.squeeze(0), Parameter(*model, "head.bias")));
}

TEST_F(ClassifierTest, ShortSequencesGiveEveryParameterAGradient) {
  for (const bool padded : {false, true}) {
    for (const int64_t T : {1, 2, 3}) {
      Classifier model = MakeModel(SmallOptions());
      const at::Tensor lengths = at::tensor({T, int64_t{1}, int64_t{0}}, at::kLong);
      model(Ids(3, T, 16, 4), padded ? std::optional(lengths) : std::nullopt)
          .backward(Normal({3, 5}, 5));
      for (const auto& item : model->named_parameters()) {
        ASSERT_TRUE(item.value().grad().defined()) << item.key() << " at T = " << T;
        EXPECT_TRUE(AllFinite(item.value().grad())) << item.key() << " at T = " << T;
      }
    }
  }
}

TEST_F(ClassifierTest, EmptyBatches) {
  Classifier model = MakeModel(SmallOptions());
  const at::Tensor none = model(at::zeros({0, 7}, at::kLong));
  EXPECT_THAT(none.sizes(), ElementsAre(0, 5));
  none.sum().backward();
  EXPECT_THAT(model(at::zeros({0, 7}, at::kLong), at::zeros({0}, at::kLong)).sizes(),
              ElementsAre(0, 5));
  const at::Tensor no_tokens = model(at::zeros({2, 0}, at::kLong));
  EXPECT_THAT(no_tokens.sizes(), ElementsAre(2, 5));
  EXPECT_TRUE(AllFinite(no_tokens));
}

TEST_F(ClassifierTest, DropoutActsInTrainingOnly) {
  ClassifierOptions o = SmallOptions();
  o.dropout = 0.3;
  Classifier model = MakeModel(o);
  const at::Tensor ids = Ids(2, 20, 16, 3), quiet = model(ids);
  EXPECT_TRUE(CompareTensorBits(model(ids), quiet));
  model->train();
  EXPECT_FALSE(CompareTensorBits(model(ids), quiet));
  EXPECT_FALSE(CompareTensorBits(model(ids), model(ids)));
}

std::string Message(const std::function<void()>& job) {
  try {
    job();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST_F(ClassifierTest, WrongIdsAreNamed) {
  Classifier model = MakeModel(SmallOptions());
  const auto message = [&](const at::Tensor& ids) { return Message([&] { model(ids); }); };
  EXPECT_EQ(message(at::zeros({2, 64}, at::kLong)), "no error");
  EXPECT_EQ(message(at::full({1, 1}, 3, at::kLong)), "no error");
  EXPECT_EQ(message(at::Tensor()), "ids has shape (undefined), must be [B, T]");
  EXPECT_EQ(message(at::zeros({7}, at::kLong)), "ids has shape [7], must be [B, T]");
  EXPECT_EQ(message(at::zeros({2, 7})), "ids is Float, must be int64");
  EXPECT_EQ(message(at::full({2, 7}, 16, at::kLong)),
            "ids has the value 16, must be 0 … 15 (vocabulary 16)");
  EXPECT_EQ(message(at::full({2, 7}, -1, at::kLong)),
            "ids has the value -1, must be 0 … 15 (vocabulary 16)");
  EXPECT_THAT(message(at::zeros({2, 65}, at::kLong)),
              HasSubstr("ids has T = 65 tokens, but the model has learned positions for 64"));
  EXPECT_EQ(Message([&] {
              model(at::zeros({2, 7}, at::kLong), at::zeros({3}, at::kLong));
            }),
            "lengths has shape [3], must be [B] = [2]");
}

TEST_F(ClassifierTest, WrongOptionsAreNamed) {
  const auto message = [](const std::function<void(ClassifierOptions&)>& change) {
    ClassifierOptions o = SmallOptions();
    change(o);
    return Message([&] { Classifier model(o); });
  };
  EXPECT_EQ(message([](auto& o) { o.layers = 0; }), "layers is 0, must be at least 1");
  EXPECT_EQ(message([](auto& o) { o.d_ff = 0; }), "d_ff is 0, must be at least 1");
  EXPECT_EQ(message([](auto& o) { o.vocabulary = 0; }), "vocabulary is 0, must be at least 1");
  EXPECT_EQ(message([](auto& o) { o.classes = 0; }), "classes is 0, must be at least 1");
  EXPECT_EQ(message([](auto& o) { o.seq_len = 0; }), "seq_len is 0, must be at least 1");
  EXPECT_EQ(message([](auto& o) { o.dropout = -0.1; }),
            "dropout is -0.1, must be at least 0 and below 1");
  EXPECT_EQ(message([](auto& o) { o.attention.heads = 0; }), "heads is 0, must be at least 1");
  EXPECT_THROW(TransformerBlock(HktAttentionOptions{}, 0, 0.0), UsageError);
}

ClassifierOptions ColourOptions() {
  ClassifierOptions o = SmallOptions();
  o.rgb = true;
  o.vocabulary = 0;
  return o;
}

TEST_F(ClassifierTest, ColoursGoThroughALinearMap) {
  Classifier colours = MakeModel(ColourOptions()), ids = MakeModel(SmallOptions());
  EXPECT_EQ(ParameterCount(ColourOptions()), Count(*colours));
  const int64_t d = ColourOptions().attention.d_model;
  EXPECT_THAT(Parameter(*colours, "embedding.weight").sizes(), ElementsAre(d, 3));
  EXPECT_THAT(Parameter(*colours, "embedding.bias").sizes(), ElementsAre(d));
  // The model of ids whose table is the map's image of 16 colours gives the same logits.
  {
    const torch::NoGradGuard no_grad;
    for (const auto& item : colours->named_parameters()) {
      if (!item.key().starts_with("embedding.")) Parameter(*ids, item.key()).copy_(item.value());
    }
    const at::Tensor table = at::randint(0, 256, {16, 3}, at::kLong);
    Parameter(*ids, "embedding.weight")
        .copy_(at::matmul(table.to(at::kDouble) / 127.5 - 1,
                          Parameter(*colours, "embedding.weight").t()) +
               Parameter(*colours, "embedding.bias"));
    const at::Tensor index = Ids(3, 20, 16, 5), pixels = table.index({index});
    const at::Tensor lengths = at::tensor({20, 7, 0}, at::kLong);
    EXPECT_TRUE(CompareTensors(colours(pixels), ids(index), 1e-12));
    EXPECT_TRUE(CompareTensors(colours(pixels, lengths), ids(index, lengths), 1e-12));
    EXPECT_TRUE(CompareTensorBits(colours(pixels.to(at::kByte)), colours(pixels)));
    EXPECT_TRUE(CompareTensorBits(colours(pixels.to(at::kDouble) / 127.5 - 1), colours(pixels)));
  }
  colours(at::randint(0, 256, {2, 9, 3}, at::kLong)).sum().backward();
  for (const char* name : {"embedding.weight", "embedding.bias"})
    EXPECT_TRUE(Parameter(*colours, name).grad().defined()) << name;
}

TEST_F(ClassifierTest, WrongColoursAreNamed) {
  Classifier model = MakeModel(ColourOptions());
  const auto message = [&](const at::Tensor& ids) { return Message([&] { model(ids); }); };
  EXPECT_EQ(message(at::full({2, 7, 3}, 255, at::kLong)), "no error");
  EXPECT_EQ(message(at::zeros({2, 7}, at::kLong)), "ids has shape [2, 7], must be [B, T, 3]");
  EXPECT_EQ(message(at::zeros({2, 7, 1})), "ids has shape [2, 7, 1], must be [B, T, 3]");
  EXPECT_EQ(message(at::zeros({2, 7, 3}, at::kInt)),
            "ids is Int, must be int64, uint8 or floating");
  EXPECT_EQ(message(at::full({2, 7, 3}, 256, at::kLong)),
            "ids has the value 256, must be 0 … 255 (bytes)");
}

TEST_F(ClassifierTest, MhaWideHasHktsParametersWithColours) {
  Config config;
  Resolve(config);
  const auto hkt =
      static_cast<double>(ParameterCount(MakeClassifierOptions(config.model, 0, 1024, 10, true)));
  config.model.model = "mha-wide";
  config.model.levels.reset();
  config.model.hybrid.reset();
  Resolve(config);
  const ClassifierOptions wide = MakeClassifierOptions(config.model, 0, 1024, 10, true);
  EXPECT_TRUE(wide.rgb);
  EXPECT_EQ(ParameterCount(wide), Count(*Classifier(wide)));
  EXPECT_LE(std::abs(static_cast<double>(ParameterCount(wide)) - hkt), 0.01 * hkt);
}

// The same seed, the same model.
TEST_F(ClassifierTest, SeedsDecideTheStart) {
  at::manual_seed(9);
  Classifier first(SmallOptions());
  at::manual_seed(9);
  Classifier second(SmallOptions());
  at::manual_seed(10);
  Classifier third(SmallOptions());
  const at::Tensor ids = Ids(2, 9, 16, 1);
  EXPECT_TRUE(CompareTensorBits(first(ids), second(ids)));
  EXPECT_FALSE(CompareTensorBits(first(ids), third(ids)));
}

}  // namespace
}  // namespace hkt::nn
