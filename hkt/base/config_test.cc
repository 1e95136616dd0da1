#include "hkt/base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hkt/base/error.h"

namespace hkt {
namespace {

using testing::HasSubstr;

std::string ProblemsOf(Config config) {
  try {
    Resolve(config);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(ConfigTest, ModelNamesDecideLevelsAndGates) {
  struct Case {
    const char* model;
    int64_t levels;
    bool hybrid;
  };
  for (const Case& c : {Case{"hkt", 3, true}, Case{"hkt-fusion", 3, false}, Case{"mha", 1, false},
                        Case{"mha-conv", 1, true}, Case{"mha-wide", 1, false}}) {
    Config config;
    config.model.model = c.model;
    Resolve(config);
    EXPECT_EQ(config.model.levels, c.levels) << c.model;
    EXPECT_EQ(config.model.hybrid, c.hybrid) << c.model;
    EXPECT_EQ(config.model.kv_heads, config.model.heads);
    EXPECT_EQ(ProblemsOf(config), "") << "resolving twice";
  }
}

TEST(ConfigTest, HktWithoutGatesIsFusionOnly) {
  Config config;
  config.model.hybrid = false;
  Resolve(config);
  EXPECT_EQ(config.model.hybrid, false);
  EXPECT_EQ(config.model.levels, 3);
}

TEST(ConfigTest, ContradictionsNameTheMend) {
  Config config;
  config.model.model = "mha";
  config.model.levels = 3;
  EXPECT_THAT(ProblemsOf(config), HasSubstr("use model hkt or hkt-fusion"));
  config.model.levels.reset();
  config.model.hybrid = true;
  EXPECT_THAT(ProblemsOf(config), HasSubstr("use model mha-conv"));
}

TEST(ConfigTest, AblationsNeedWhatTheyChange) {
  const auto problems = [](const char* model, auto change) {
    Config config;
    config.model.model = model;
    change(config.model);
    return ProblemsOf(config);
  };
  const auto uniform = [](ModelConfig& m) { m.fusion = "uniform"; };
  EXPECT_EQ(problems("hkt", uniform), "");
  EXPECT_THAT(problems("mha", uniform),
              HasSubstr("fusion is uniform, but the model has one level"));
  EXPECT_THAT(problems("mha-conv", [](auto& m) { m.downsample = "pick"; }),
              HasSubstr("downsample is pick, but the model has one level"));
  EXPECT_THAT(problems("mha-wide", [](auto& m) { m.undecimated = true; }),
              HasSubstr("undecimated is true, but the model has one level"));
  EXPECT_THAT(problems("hkt",
                       [](auto& m) {
                         m.undecimated = true;
                         m.downsample = "pick";
                       }),
              HasSubstr("downsample pick leaves such levels nothing to do"));
  const auto half = [](ModelConfig& m) { m.gate_start = 0; };
  EXPECT_EQ(problems("mha-conv", half), "");
  EXPECT_THAT(problems("hkt-fusion", half),
              HasSubstr("gate_start is 0, but the model has no gates"));
  EXPECT_THAT(problems("hkt", [](auto& m) { m.fusion = "fixed"; }),
              HasSubstr("fusion is 'fixed', must be one of learned|uniform|frozen"));
}

TEST(ConfigTest, EveryFieldAtFaultIsNamed) {
  Config config;
  config.model.model = "gpt";
  config.model.stride = 1;
  config.train.lr = 0;
  config.train.warmup = std::numeric_limits<double>::quiet_NaN();
  const std::string problems = ProblemsOf(config);
  for (const char* text : {"model is 'gpt'", "stride is 1, must be at least 2",
                           "lr is 0, must be above 0", "warmup is nan"}) {
    EXPECT_THAT(problems, HasSubstr(text));
  }
}

TEST(ConfigTest, AStepHasALimit) {
  Config config;
  config.train.batch = config.train.accumulate = kMaxBatch;
  EXPECT_THAT(
      ProblemsOf(config),
      HasSubstr("batch * accumulate is 4294967296 sequences a step, must be at most 1048576"));
}

TEST(ConfigTest, HeadsMustFit) {
  Config config;
  config.model.heads = 3;
  EXPECT_THAT(ProblemsOf(config), HasSubstr("multiple of heads = 3"));
  config.model.heads = 4;
  config.model.kv_heads = 3;
  EXPECT_THAT(ProblemsOf(config), HasSubstr("must divide heads = 4"));
  config.model.kv_heads = 2;
  config.model.psd = true;
  EXPECT_THAT(ProblemsOf(config), HasSubstr("psd needs kv_heads = heads"));
  config.model.psd = false;
  config.model.rotary = true;
  config.model.d_model = 12;
  EXPECT_THAT(ProblemsOf(config), HasSubstr("even head width"));
}

}  // namespace
}  // namespace hkt
