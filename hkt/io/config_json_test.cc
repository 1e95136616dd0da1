#include "hkt/io/config_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "hkt/base/error.h"
#include "hkt/base/version.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/io/run_folder.h"

namespace hkt::io {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;
using Json = nlohmann::ordered_json;

TEST(ConfigJsonTest, RoundTrip) {
  Config config;
  config.data.seq_len = 77;
  config.model.hybrid = false;
  config.train.lr = 0.1 + 0.2;  // every bit must come back
  config.data.data = "päth \"x\"";
  Config read;
  FromJson(Json::parse(ToJson(config).dump()), read);
  EXPECT_EQ(ToJson(read), ToJson(config));
  EXPECT_EQ(read.train.lr, config.train.lr);
  EXPECT_EQ(read.model.levels, std::nullopt);
  EXPECT_EQ(read.model.hybrid, std::optional(false));
}

TEST(ConfigJsonTest, TakesOnlyWhatIsThere) {
  Config config;
  config.train.batch = 5;
  FromJson({{"lr", 1}, {"steps", 1e4}, {"levels", 2}, {"seq_len", nullptr}}, config);
  EXPECT_EQ(config.train.lr, 1.0);
  EXPECT_EQ(config.train.steps, 10'000);
  EXPECT_EQ(config.model.levels, std::optional<int64_t>(2));
  EXPECT_EQ(config.train.batch, 5);
}

// The config.json of a run that was begun before these options were there.
TEST(ConfigJsonTest, OlderFilesLackOptions) {
  Json older = ToJson(Config());
  for (const char* key : {"fusion", "gate_start", "downsample", "undecimated"}) {
    EXPECT_TRUE(older.contains(key)) << key;
    older.erase(key);
  }
  Config read;
  FromJson(older, read);
  Resolve(read);
  EXPECT_EQ(read.model.fusion, "learned");
  EXPECT_EQ(read.model.gate_start, 2);
  EXPECT_EQ(read.model.downsample, "conv");
  EXPECT_FALSE(read.model.undecimated);
}

TEST(ConfigJsonTest, ListsEveryMistakeAndSetsNothing) {
  Config config;
  const Json document = {{"lr", "fast"},    {"batch", 1.5},
                         {"psd", 1},        {"eval-every", 5},
                         {"drop_out", 0.1}, {"zzzzzzzzz", 1},
                         {"steps", 7},      {"task", nullptr},
                         {"seed", 1e300},   {"d_ff", 18446744073709551615u}};
  EXPECT_THAT([&] { FromJson(document, config, "my.json"); },
              ThrowsMessage<UsageError>(AllOf(
                  HasSubstr("my.json: "), HasSubstr("lr is \"fast\", must be a number"),
                  HasSubstr("batch is 1.5, must be an integer"),
                  HasSubstr("psd is 1, must be true or false"),
                  HasSubstr("unknown key 'eval-every' (did you mean 'eval_every'?)"),
                  HasSubstr("unknown key 'drop_out' (did you mean 'dropout'?)"),
                  AllOf(HasSubstr("unknown key 'zzzzzzzzz'"), Not(HasSubstr("'zzzzzzzzz' (did"))),
                  AllOf(HasSubstr("task is null, must be text"), HasSubstr("seed is 1e+300"),
                        HasSubstr("d_ff is 18")),
                  Not(HasSubstr("\n")))));
  EXPECT_EQ(config.train.steps, Config().train.steps);
  EXPECT_THROW(FromJson(Json::array(), config), UsageError);
}

TEST(ConfigJsonTest, DifferencesAndCopies) {
  Config stored, wanted;
  wanted.train.lr = 5;
  wanted.train.batch = 6;
  wanted.model.levels = 2;
  EXPECT_THAT(Differences(stored, wanted, {"lr", "steps", "levels"}),
              ElementsAre("levels is 2, not null", "lr is 5.0, not 0.001"));
  CopyFields(wanted, {"batch"}, stored);
  EXPECT_EQ(stored.train.batch, 6);
  EXPECT_EQ(stored.train.lr, Config().train.lr);
}

class RunFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  const std::filesystem::path root_ =
      std::filesystem::path(::testing::TempDir()) / Concat("hkt_run_folder_test_", ::getpid());
};

TEST_F(RunFolderTest, ConfigRoundTripAndVersions) {
  const RunFolder folder(root_);
  EXPECT_FALSE(folder.HoldsRun());
  EXPECT_THAT([&] { folder.ReadConfig(); }, ThrowsMessage<Error>(HasSubstr("no run in")));
  Config config;
  config.train.seed = 9;
  Resolve(config);
  folder.WriteConfig(config);
  EXPECT_TRUE(folder.HoldsRun());
  EXPECT_EQ(ToJson(folder.ReadConfig()), ToJson(config));

  auto document = ParseJson<Json>(ReadFile(folder.config()), "config");
  EXPECT_EQ(document[kVersionKey], Version());
  Config from_run;  // a run's config.json is a configuration file too
  FromJson(document, from_run);
  EXPECT_EQ(from_run.train.seed, 9);

  document[kVersionKey] = "999.0.0";
  WriteFileAtomically(folder.config(), PrettyJson(document));
  EXPECT_THAT([&] { folder.ReadConfig(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("999.0.0"), HasSubstr(std::string(Version())),
                                         HasSubstr("update hkt"))));
  document.erase(kVersionKey);
  WriteFileAtomically(folder.config(), PrettyJson(document));
  EXPECT_THAT([&] { folder.ReadConfig(); },
              ThrowsMessage<Error>(HasSubstr("not the file of a run")));
}

TEST(VersionTest, NewerIsRefusedByNumberNotByText) {
  EXPECT_NO_THROW(CheckWrittenBy("0.0.10", "file"));
  EXPECT_NO_THROW(CheckWrittenBy(Version(), "file"));
  EXPECT_THROW(CheckWrittenBy("0.10.0", "file"), Error);
  for (const char* bad : {"", "1", "1.2", "1.2.3.4", "a.b.c", "-1.0.0", "1..2", "0.1.0 "}) {
    EXPECT_THAT([&] { CheckWrittenBy(bad, "file"); },
                ThrowsMessage<Error>(HasSubstr("not a version")))
        << bad;
  }
}

TEST_F(RunFolderTest, NumberedFoldersAreNew) {
  EXPECT_EQ(CreateNumberedFolder(root_ / "runs", "a"), root_ / "runs" / "a-1");
  EXPECT_EQ(CreateNumberedFolder(root_ / "runs", "a"), root_ / "runs" / "a-2");
  EXPECT_TRUE(std::filesystem::is_directory(root_ / "runs" / "a-2"));
  WriteFileAtomically(root_ / "file", "");
  EXPECT_THROW(CreateNumberedFolder(root_ / "file", "a"), Error);
}

TEST_F(RunFolderTest, LockIsForOneAndClearsTheKilled) {
  WriteFileAtomically(root_ / "state.safetensors.tmp-123", "half");
  {
    const FolderLock lock(root_);
    EXPECT_FALSE(std::filesystem::exists(root_ / "state.safetensors.tmp-123"));
    EXPECT_THAT([&] { FolderLock second(root_); },
                ThrowsMessage<Error>(HasSubstr("another process is training")));
  }
  EXPECT_NO_THROW(FolderLock again(root_));
}

}  // namespace
}  // namespace hkt::io
