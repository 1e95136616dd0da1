// The whole job on run folders: the layout of analysis.json, what is left out and said so, and
// folders that are broken, foreign or cut short.

#include "hkt/analysis/analyze.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>

#include "hkt/analysis/subject.h"
#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/io/run_folder.h"

namespace hkt::analysis {
namespace {

class AnalyzeRun : public ::testing::Test {
 protected:
  AnalyzeRun() {
    root_ = std::filesystem::path(::testing::TempDir()) / Concat("hkt_analyze_", ::getpid());
    std::filesystem::create_directories(root_);
    config_.data.preset = "tiny";
    config_.model.d_model = 8;
    config_.model.d_ff = 12;
    config_.model.layers = 2;
  }
  ~AnalyzeRun() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  // A run folder with weights as training would leave them after no step.
  std::string MakeRun(const std::string& name, Config config) const {
    Resolve(config);
    const io::RunFolder folder(root_ / name);
    std::filesystem::create_directories(folder.root());
    folder.WriteConfig(config);
    const train::Model model(config, data::Describe(config.data));
    train::SaveModel(folder, model, config, {.step = 7, .accuracy = 0.25, .loss = 2});
    return folder.root().string();
  }

  static Json Run(const AnalyzeRequest& request) {
    return Analyze(request, [](const std::string&, int64_t, int64_t) {});
  }

  std::filesystem::path root_;
  Config config_;
};

TEST_F(AnalyzeRun, HoldsEverySubject) {
  AnalyzeRequest request{.run = MakeRun("one", config_), .initial = true, .examples = 20};
  request.compare = MakeRun("other", [this] {
    Config other = config_;
    other.model.model = "hkt-fusion";
    return other;
  }());
  std::set<std::string> stages;
  const Json json =
      Analyze(request, [&](const std::string& what, int64_t, int64_t) { stages.insert(what); });
  EXPECT_TRUE(stages.contains("validation sequences"));
  EXPECT_TRUE(stages.contains("levels removed"));
  EXPECT_EQ(json["sequences"], 64);
  EXPECT_EQ(json["skipped"].size(), 0u);
  EXPECT_EQ(json["weights"]["validation"]["step"], 7);
  EXPECT_EQ(json["kernel"]["levels"].size(), 2u * 2 * 3);
  EXPECT_EQ(json["kernel"]["concatenated"].size(), 2u * 3);
  EXPECT_EQ(json["direction"]["levels"].size(), 2u * 2 * 3);
  EXPECT_EQ(json["mixture"]["levels"].size(), 2u * 2 * 3);
  EXPECT_EQ(json["approximation"]["truncations"].size(), 2u * 2 * 3);
  EXPECT_EQ(json["approximation"]["identity_holds"], true);
  EXPECT_EQ(json["approximation"]["bounds_hold"], true);
  EXPECT_EQ(json["approximation"]["training_sequences"], 64);
  EXPECT_EQ(json["kurtosis"]["levels"].size(), 2u * 3);
  EXPECT_EQ(json["kurtosis"]["scores"].size(), 2u * 2 * 4);
  EXPECT_EQ(json["levels_removed"]["samples"], 20);
  EXPECT_EQ(json["published"].size(), 4u);
  EXPECT_EQ(json["compare"]["model"], "hkt-fusion");
  EXPECT_TRUE(json["compare"]["mixture"]["levels"][0]["beta"].is_null());
  for (const Json& row : json["kernel"]["levels"]) {
    EXPECT_EQ(row["negative_share"], 0.5);  // 2 D = d
    EXPECT_LE(row["rank"], row["rank_bound"]);
    EXPECT_TRUE(row["locality_preference"].is_number());
  }
  for (const Json& row : json["kernel"]["gram"]) {
    EXPECT_LE(row["min_bound_mean"].get<double>(), row["min_mean"].get<double>());
    EXPECT_LE(row["rank_mean"].get<double>(), row["rank_bound_chain_mean"].get<double>());
    EXPECT_FALSE(row["condition"].get<bool>());
  }
  double lambda = 0, shares = 0;
  for (int l = 0; l < 3; ++l) {
    lambda += json["mixture"]["levels"][static_cast<size_t>(l)]["lambda"].get<double>();
    shares += json["mixture"]["levels"][static_cast<size_t>(l)]["variance_share"].get<double>();
  }
  EXPECT_NEAR(lambda, 1, 1e-12);
  EXPECT_NEAR(shares, 1, 1e-9);
  // These weights are those the run began with, so the untrained model has the same figures.
  EXPECT_EQ(json["initial"]["weights"]["kind"], "initial");
  EXPECT_EQ(json["initial"]["kernel"], json["kernel"]);
  EXPECT_EQ(json["initial"]["skipped"][0]["subject"], "levels_removed");

  WriteAnalysis(request.run, json);
  const std::string text = io::ReadFile(io::RunFolder(request.run).analysis());
  EXPECT_EQ(io::ParseJson<Json>(text, "analysis.json")["hkt_version"], json["hkt_version"]);
  // A second look gives the same figures.
  EXPECT_EQ(Run({.run = request.run, .examples = 20})["direction"], json["direction"]);
}

TEST_F(AnalyzeRun, TiedProjectionsMeetTheCondition) {
  config_.model.psd = true;
  const Json json = Run({.run = MakeRun("psd", config_), .examples = 5});
  for (const Json& row : json["kernel"]["gram"]) {
    EXPECT_TRUE(row["condition"].get<bool>());
    EXPECT_EQ(row["psd_sequences"], json["kernel"]["spectral_sequences"]);
    EXPECT_EQ(row["negative_share"], 0.0);
  }
  for (const Json& row : json["direction"]["levels"]) {
    EXPECT_NEAR(row["alpha"].get<double>(), 0, 1e-12);
    EXPECT_TRUE(row["z"].is_null());
  }
}

TEST_F(AnalyzeRun, OtherModels) {
  Config rotary = config_;
  rotary.model.rotary = true;
  const Json turned = Run({.run = MakeRun("rotary", rotary), .examples = 5});
  ASSERT_EQ(turned["skipped"].size(), 4u);
  EXPECT_EQ(turned["skipped"][0]["subject"], "kernel");
  EXPECT_FALSE(turned.contains("direction"));
  EXPECT_TRUE(turned.contains("mixture"));

  Config mha = config_;
  mha.model.model = "mha";
  const Json one = Run({.run = MakeRun("mha", mha), .examples = 5});
  ASSERT_EQ(one["skipped"].size(), 2u);
  EXPECT_EQ(one["skipped"][0]["subject"], "approximation");
  EXPECT_EQ(one["skipped"][1]["subject"], "levels_removed");
  EXPECT_EQ(one["kurtosis"]["scores"].size(), 2u * 2 * 2);  // a level and the fused score
  EXPECT_EQ(one["cost"]["all_pairs"][5]["ratio"], 1.0);

  Config bias = config_;
  bias.model.bias = true;
  bias.model.bidirectional = true;
  const Json wide = Run({.run = MakeRun("bias", bias), .examples = 5});
  EXPECT_EQ(wide["kernel"]["levels"][0]["zero"], 1);  // 2 D = 8 of d + 1 = 9
  EXPECT_EQ(wide["kernel"]["levels"][0]["rank_bound"], 8);
}

TEST_F(AnalyzeRun, AblationsWorkOrAreRefusedByName) {
  Config uniform = config_;
  uniform.model.fusion = "uniform";
  const Json even = Run({.run = MakeRun("uniform", uniform), .examples = 5});
  EXPECT_NEAR(even["mixture"]["levels"][0]["lambda"].get<double>(), 1.0 / 3, 1e-12);
  ASSERT_EQ(even["skipped"].size(), 1u);
  EXPECT_EQ(even["skipped"][0]["subject"], "levels_removed");
  const auto refused = [&](const char* name, auto change) -> std::string {
    Config config = config_;
    change(config.model);
    try {
      Run({.run = MakeRun(name, config), .examples = 5});
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refused("pick", [](ModelConfig& m) { m.downsample = "pick"; }),
              ::testing::HasSubstr("trained with downsample pick"));
  EXPECT_THAT(refused("whole", [](ModelConfig& m) { m.undecimated = true; }),
              ::testing::HasSubstr("trained with undecimated"));
}

TEST_F(AnalyzeRun, BrokenFoldersGiveOneClearError) {
  const auto expect = [](const std::string& run, const std::string& words) {
    try {
      Run({.run = run, .examples = 1});
      ADD_FAILURE() << run << ": no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  expect((root_ / "nowhere").string(), "nowhere");
  const auto path = [](const std::string& run) { return io::RunFolder(run); };

  const std::string no_weights = MakeRun("no_weights", config_);
  std::filesystem::remove(path(no_weights).model());
  expect(no_weights, "no weights");

  const std::string cut = MakeRun("cut", config_);
  std::filesystem::resize_file(path(cut).model(), 300);
  expect(cut, "model.safetensors");

  const std::string damaged = MakeRun("damaged", config_);
  std::fstream file(path(damaged).model(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-8, std::ios::end);
  file << "xxxx";
  file.close();
  expect(damaged, "model.safetensors");

  const std::string foreign = MakeRun("foreign", config_);
  Config wider = config_;
  wider.model.d_model = 16;
  std::filesystem::copy_file(path(MakeRun("wider", wider)).model(), path(foreign).model(),
                             std::filesystem::copy_options::overwrite_existing);
  expect(foreign, "d_model is 8, not 16");

  const std::string garbled = MakeRun("garbled", config_);
  io::WriteFileAtomically(path(garbled).config(), "{\"task\": ");
  expect(garbled, "config.json");

  const std::string newer = MakeRun("newer", config_);
  std::string text = io::ReadFile(path(newer).config());
  const size_t at = text.find("\"hkt_version\": \"") + 16;
  text.replace(at, text.find('"', at) - at, "99.0.0");
  io::WriteFileAtomically(path(newer).config(), text);
  expect(newer, "99.0.0");
}

TEST_F(AnalyzeRun, WrongRequestsAreRefused) {
  const std::string run = MakeRun("run", config_);
  EXPECT_THROW(Run({.run = run, .examples = 0}), UsageError);
  EXPECT_THROW(Run({.run = run, .example = 1 << 30}), UsageError);
  EXPECT_THROW(Run({.run = run, .compare = (root_ / "nowhere").string(), .examples = 1}), Error);
}

}  // namespace
}  // namespace hkt::analysis
