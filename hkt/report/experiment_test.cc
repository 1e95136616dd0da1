#include "hkt/report/experiment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hkt/base/error.h"
#include "hkt/io/config_json.h"
#include "hkt/report/run_test_util.h"

namespace hkt::report {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

constexpr const char* kRow =
    R"({"row": "HKT", "group": "table", "base": "_b", "seeds": [1, 3], "note": "why",
        "config": {"model": "hkt", "steps": 9, "psd": true}})";

std::vector<std::string> Ids(const std::vector<ExperimentRun>& runs) {
  std::vector<std::string> ids;
  for (const ExperimentRun& run : runs) ids.push_back(run.id());
  return ids;
}

TEST(ExperimentTest, BasesLieBeneathAndSeedsBecomeRuns) {
  const TestFolder folder;
  folder.Write("experiments/t/_a.json", R"({"config": {"steps": 5, "lr": 0.5, "batch": 7}})");
  folder.Write("experiments/t/_b.json", R"({"base": "_a", "config": {"lr": 0.25}})");
  folder.Write("experiments/t/x-hkt.json", kRow);
  folder.Write("experiments/t/x-l1.json",
               R"({"row": "L = 1", "group": "ablation", "seeds": [1], "config": {}})");
  folder.Write("experiments/t/a-mha.json",
               R"({"row": "MHA", "group": "table", "seeds": [1], "config": {"model": "mha"}})");
  const auto runs = ReadTier(folder.places(), "t");
  // The table before ablations, the first seed of every row before the next.
  EXPECT_THAT(Ids(runs), ElementsAre("a-mha-s1", "x-hkt-s1", "x-hkt-s3", "x-l1-s1"));
  const ExperimentRun& run = runs[2];
  EXPECT_EQ(run.seed, 3);
  EXPECT_EQ(run.config.train.seed, 3);
  EXPECT_EQ(run.config.train.steps, 9);
  EXPECT_EQ(run.config.train.batch, 7);
  EXPECT_EQ(run.config.train.lr, 0.25);
  EXPECT_EQ(run.config.model.levels, 3);  // resolved
  EXPECT_EQ(run.note, "why");
  EXPECT_EQ(folder.places().result(run), folder.path() / "experiments/results/t/x-hkt-s3.json");
  EXPECT_EQ(folder.places().folder(run), folder.path() / "runs/t/x-hkt-s3");
  EXPECT_THAT(TrainFlags(run), ElementsAre("--steps", "9", "--lr", "0.25", "--batch", "7",
                                           "--model", "hkt", "--psd", "--seed", "3"));
  EXPECT_THAT(Ids(Only(runs, {"x-hkt-s3", "a-mha"})), ElementsAre("a-mha-s1", "x-hkt-s3"));
  EXPECT_THAT([&] { Only(runs, {"x"}); },
              ThrowsMessage<UsageError>(HasSubstr("it has a-mha, x-hkt, x-l1,")));
}

TEST(ExperimentTest, WhatIsWrongInAFileIsSaidWithItsName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"row": "A", "group": "g", "seeds": [1], "config": {}, "sede": 1})",
       "unknown key 'sede'"},
      {R"({"row": "A", "group": "g", "seeds": [1], "config": {"stesp": 1}})",
       "did you mean 'steps'"},
      {R"({"row": "A", "group": "g", "seeds": [1], "config": {"levels": 0}})", "levels is 0"},
      {R"({"row": "A", "group": "g", "seeds": [1], "config": {"seed": 2}})", "seeds stand beside"},
      {R"({"row": "A", "group": "g", "seeds": [1], "config": {"data": "x"}})", "config has data"},
      {R"({"row": "A", "group": "g", "seeds": [1, 1], "config": {}})", "different whole numbers"},
      {R"({"row": "A", "group": "g", "seeds": [], "config": {}})", "different whole numbers"},
      {R"({"row": "A", "group": "g", "config": {}})", "different whole numbers"},
      {R"({"row": 1, "group": "g", "seeds": [1], "config": {}})", "row must be there"},
      {R"({"row": "A", "group": "g", "seeds": [1]})", "config must be there"},
      {R"({"row": "A", "group": "g", "seeds": [1], "base": "_no", "config": {}})", "no base"},
      {R"({"row": "A", "group": "g", "seeds": [1], "base": "../_a", "config": {}})",
       "base is '../"},
      {R"({"row": "A", "group": "g", "seeds": [1], "base": "_c", "config": {}})", "in a circle"},
      {R"([1])", "must be a JSON object"},
  };
  for (const auto& [text, message] : cases) {
    const TestFolder folder;
    folder.Write("experiments/t/_c.json", R"({"base": "_c", "config": {}})");
    folder.Write("experiments/t/x.json", text);
    EXPECT_THAT([&] { ReadTier(folder.places(), "t"); }, ThrowsMessage<Error>(HasSubstr(message)))
        << text;
    EXPECT_THAT([&] { ReadTier(folder.places(), "t"); }, ThrowsMessage<Error>(HasSubstr(".json")))
        << text;
  }
}

TEST(ExperimentTest, UnknownTiersNameThoseThatThereAre) {
  const TestFolder folder;
  folder.Write("experiments/small/x.json", kRow);
  folder.Write("experiments/results/small/x.json", "{}");
  for (const char* tier : {"large", "results", "", "../experiments/small"}) {
    EXPECT_THAT([&] { ReadTier(folder.places(), tier); },
                ThrowsMessage<UsageError>(HasSubstr("tiers are small ")))
        << tier;
  }
}

TEST(ExperimentTest, DifferencesOfConfigurationsAreNamed) {
  const TestFolder folder;
  folder.Write("experiments/t/x.json",
               R"({"row": "A", "group": "g", "seeds": [1], "config": {"lr": 0.002}})");
  const ExperimentRun run = ReadTier(folder.places(), "t").at(0);
  Json stored = io::ToJson(run.config);
  EXPECT_THAT(ConfigDifferences(run, stored, "file"), IsEmpty());
  stored["threads"] = 2;
  stored["save_every"] = 1;
  stored["data"] = "elsewhere";
  EXPECT_THAT(ConfigDifferences(run, stored, "file"), IsEmpty());
  stored.erase("rotary");  // of an hkt that did not know it
  EXPECT_THAT(ConfigDifferences(run, stored, "file"), IsEmpty());
  stored["lr"] = 0.001;
  stored["seed"] = 2;
  EXPECT_THAT(ConfigDifferences(run, stored, "file"),
              ElementsAre("lr is 0.001 there, 0.002 in the experiment",
                          "seed is 2 there, 1 in the experiment"));
}

}  // namespace
}  // namespace hkt::report
