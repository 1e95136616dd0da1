#include "hkt/data/listops_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "hkt/base/error.h"
#include "hkt/data/task.h"
#include "hkt/io/checksum.h"
#include "hkt/io/file.h"

namespace hkt::data::listops {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::set<Split> kAll(kAllSplits.begin(), kAllSplits.end());

class ListOpsFolderTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    made_ = fs::path(testing::TempDir()) / "listops_folder_test";
    fs::remove_all(made_);
    WriteFolder((made_ / "made").string(), tiny(), 7);
  }
  static void TearDownTestSuite() { fs::remove_all(made_); }

  // A copy to break.
  void SetUp() override {
    folder_ = made_ / testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::copy(made_ / "made", folder_);
  }

  static const Preset& tiny() { return FindPreset("tiny"); }

  std::string ProblemOfReading(const Preset& preset = tiny(), uint64_t seed = 7) {
    try {
      ReadFolder(folder_.string(), preset, seed, 96, kAll);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  void Edit(const char* file, const std::string& from, const std::string& to) {
    std::string content = io::ReadFile(folder_ / file);
    const size_t place = content.find(from);
    ASSERT_NE(place, content.npos);
    content.replace(place, from.size(), to);
    io::WriteFileAtomically(folder_ / file, content);
  }

  inline static fs::path made_;
  fs::path folder_;
};

TEST_F(ListOpsFolderTest, ReadsBackWhatTheGeneratorMakes) {
  const auto generated = Generate(tiny(), 7, kAll);
  const auto read = ReadFolder(folder_.string(), tiny(), 7, 96, kAll);
  ASSERT_EQ(read.size(), 3u);
  for (const auto& [split, dataset] : generated) {
    EXPECT_EQ(read.at(split).tokens, dataset.tokens);
    EXPECT_EQ(read.at(split).offsets, dataset.offsets);
    EXPECT_EQ(read.at(split).labels, dataset.labels);
    EXPECT_EQ(read.at(split).truncated, 0);
  }
  DataConfig config;
  config.preset = "tiny";
  config.data_seed = 7;
  config.data = folder_.string();
  EXPECT_EQ(Load(config, {Split::kTest}).at(Split::kTest).tokens,
            generated.at(Split::kTest).tokens);
}

TEST_F(ListOpsFolderTest, MadeTwiceTheSameBytes) {
  WriteFolder((folder_ / "again").string(), tiny(), 7);
  for (const char* file : {"train.tsv", "validation.tsv", "test.tsv", "manifest.json"}) {
    EXPECT_EQ(io::ReadFile(folder_ / file), io::ReadFile(folder_ / "again" / file)) << file;
  }
}

TEST_F(ListOpsFolderTest, ManifestHoldsSizesSharesAndChecksums) {
  const auto manifest = nlohmann::json::parse(io::ReadFile(folder_ / "manifest.json"));
  EXPECT_EQ(manifest["preset"], "tiny");
  EXPECT_EQ(manifest["data_seed"], 7);
  EXPECT_EQ(manifest["splits"]["train"]["examples"], 20000);
  EXPECT_EQ(manifest["splits"]["test"]["label_shares"].size(), 10u);
  const std::string content = io::ReadFile(folder_ / "test.tsv");
  EXPECT_EQ(manifest["splits"]["test"]["xxh3"], io::Xxh3(std::as_bytes(std::span(content))));
}

TEST_F(ListOpsFolderTest, ChangedFileIsNamed) {
  Edit("validation.tsv", " 3 ", " 4 ");
  EXPECT_THAT(ProblemOfReading(), AllOf(HasSubstr("validation.tsv"), HasSubstr("checksum")));
}

TEST_F(ListOpsFolderTest, ShortenedFileIsNamed) {
  const std::string content = io::ReadFile(folder_ / "train.tsv");
  io::WriteFileAtomically(folder_ / "train.tsv",
                          content.substr(0, content.rfind('\n', content.size() - 2) + 1));
  EXPECT_THAT(ProblemOfReading(), HasSubstr("train.tsv"));
}

TEST_F(ListOpsFolderTest, MissingFileIsNamed) {
  fs::remove(folder_ / "test.tsv");
  EXPECT_THAT(ProblemOfReading(), HasSubstr("test.tsv"));
  fs::remove(folder_ / "manifest.json");
  EXPECT_THAT(ProblemOfReading(), HasSubstr("no manifest.json"));
  folder_ /= "nowhere";
  EXPECT_THAT(ProblemOfReading(), HasSubstr("no such folder"));
}

TEST_F(ListOpsFolderTest, OtherPresetOrSeedIsRefusedWithTheFlag) {
  EXPECT_THAT(ProblemOfReading(FindPreset("short")), HasSubstr("use --preset tiny"));
  EXPECT_THAT(ProblemOfReading(tiny(), 1), HasSubstr("use --data-seed 7"));
}

TEST_F(ListOpsFolderTest, ManifestOfANewerProgramOrDamaged) {
  Edit("manifest.json", "\"version\": 1", "\"version\": 2");
  EXPECT_THAT(ProblemOfReading(), HasSubstr("newer than this program's 1"));
  Edit("manifest.json", "\"version\": 2", "\"version\": \"x\"");
  EXPECT_THAT(ProblemOfReading(), HasSubstr("not as 'hkt data make' writes it"));
  io::WriteFileAtomically(folder_ / "manifest.json", "{");
  EXPECT_THAT(ProblemOfReading(), HasSubstr("manifest.json"));
}

TEST_F(ListOpsFolderTest, NothingIsOverwrittenAndNothingHalfMadeIsLeft) {
  try {
    WriteFolder(folder_.string(), tiny(), 8);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("not an empty folder; name a new one with --out"));
  }
  EXPECT_EQ(ProblemOfReading(), "");
  fs::create_directory(folder_ / "empty");
  EXPECT_NO_THROW(WriteFolder((folder_ / "empty/").string(), tiny(), 8));
  EXPECT_TRUE(fs::exists(folder_ / "empty" / "manifest.json"));
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_EQ(entry.path().string().find(".part-"), std::string::npos) << entry.path();
  }
}

TEST(ListOpsLinesTest, MalformedLinesAreNamedByNumber) {
  const auto problem = [](std::string_view content) -> std::string {
    try {
      ParseLines(content, "x.tsv", 96);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem("9\t[MAX 2 9 ]\n1\t[MED 1 2 ]\n"), "");
  EXPECT_THAT(problem("9\t[MAX 2 9 ]\n\n"), HasSubstr("x.tsv:2: must be a label"));
  EXPECT_THAT(problem("9 [MAX 2 9 ]\n"), HasSubstr("x.tsv:1: must be a label"));
  EXPECT_THAT(problem("10\t[MAX 2 9 ]\n"), HasSubstr("x.tsv:1: must be a label"));
  EXPECT_THAT(problem("9\t[MAX 2 9 ]\n9\t[MAX 2 9\n"),
              HasSubstr("x.tsv:2: the expression ends with 1"));
  EXPECT_THAT(problem("9\t\n"), HasSubstr("x.tsv:1: an empty text"));
}

TEST(ListOpsLinesTest, LongerThanSeqLenIsCutAndCounted) {
  const Dataset dataset = ParseLines("9\t[MAX 2 9 ]\n7\t7\n", "x.tsv", 3);
  EXPECT_EQ(dataset.truncated, 1);
  EXPECT_EQ(dataset.length(0), 3);
  EXPECT_EQ(dataset.length(1), 1);
}

}  // namespace
}  // namespace hkt::data::listops
