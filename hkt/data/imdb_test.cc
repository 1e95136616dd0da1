#include "hkt/data/imdb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "hkt/base/error.h"
#include "hkt/data/archive_test_util.h"
#include "hkt/data/task.h"

namespace hkt::data::imdb {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::set<Split> kAll(kAllSplits.begin(), kAllSplits.end());
const std::set<Split> kTraining = {Split::kTrain, Split::kValidation};

// Ids back to text.
std::string Decode(std::span<const uint16_t> ids) {
  std::string text;
  for (uint16_t id : ids) text += static_cast<char>(id - 1);
  return text;
}

std::vector<std::string> Texts(const Dataset& dataset) {
  std::vector<std::string> texts;
  for (int64_t i = 0; i < dataset.size(); ++i) texts.push_back(Decode(dataset.sequence(i)));
  return texts;
}

class ImdbTest : public ArchiveFolderTest {
 protected:
  ImdbTest() : ArchiveFolderTest("aclImdb_v1.tar.gz") {}

  static std::string Problem(const std::string& path, const std::set<Split>& splits = kAll) {
    return ProblemOf([&] { Read(path, 1024, 1, splits); });
  }
};

TEST_F(ImdbTest, ArchiveInOrderOfPathWithItsOwnValidation) {
  Write(SmallImdb(20));
  const auto splits = Read(archive_, 1024, 1, kAll);
  const Dataset& test = splits.at(Split::kTest);
  ASSERT_EQ(test.size(), 40);
  EXPECT_EQ(Texts(test)[0], "test neg 0");
  EXPECT_EQ(Texts(test)[1], "test neg 10") << "by path, not by number, and not as in the archive";
  EXPECT_EQ(Texts(test)[39], "test pos 9");
  EXPECT_EQ(test.labels[0], 0);
  EXPECT_EQ(test.labels[39], 1);

  const Dataset& train = splits.at(Split::kTrain);
  const Dataset& validation = splits.at(Split::kValidation);
  EXPECT_EQ(train.size(), 36);
  EXPECT_THAT(validation.labels, ElementsAre(0, 0, 1, 1)) << "a tenth of each label";
  std::vector<std::string> all = Texts(train);
  for (const std::string& text : Texts(validation)) all.push_back(text);
  for (const std::string& text : all)
    EXPECT_EQ(text.substr(0, 5), "train") << "the usual val is the test set";
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()) - all.begin(), 40) << "disjoint, and nothing lost";
}

TEST_F(ImdbTest, ValidationDependsOnTheSeedAlone) {
  std::vector<Member> members = SmallImdb(40);
  Write(members);
  const auto first = Texts(Read(archive_, 1024, 1, kTraining).at(Split::kValidation));
  std::reverse(members.begin(), members.end());
  Write(members);
  EXPECT_EQ(Texts(Read(archive_, 1024, 1, kTraining).at(Split::kValidation)), first)
      << "other order of members";
  EXPECT_EQ(Texts(Read(archive_, 1024, 1, {Split::kValidation}).at(Split::kValidation)), first);
  EXPECT_NE(Texts(Read(archive_, 1024, 2, kTraining).at(Split::kValidation)), first);
  Unpack(members);
  EXPECT_EQ(Texts(Read((folder_ / "aclImdb").string(), 1024, 1, kTraining).at(Split::kValidation)),
            first);
}

TEST_F(ImdbTest, UnpackedFolderEqualsTheArchive) {
  const std::vector<Member> members = SmallImdb(10);
  Write(members);
  Unpack(members);
  const auto packed = Read(archive_, 8, 1, kAll);
  fs::remove(archive_);
  for (const fs::path& path : {folder_, folder_ / "aclImdb"}) {
    const auto unpacked = Read(path.string(), 8, 1, kAll);
    for (Split split : kAll) {
      EXPECT_EQ(unpacked.at(split).tokens, packed.at(split).tokens);
      EXPECT_EQ(unpacked.at(split).labels, packed.at(split).labels);
      EXPECT_EQ(unpacked.at(split).truncated, packed.at(split).truncated);
    }
  }
}

TEST_F(ImdbTest, CutReviewsAreCountedAndEmptyOnesKept) {
  std::vector<Member> members = SmallImdb(2);
  members.push_back({"aclImdb/test/neg/7_1.txt", std::string(9, 'x')});
  members.push_back({"aclImdb/test/neg/8_1.txt", std::string(5000, 'x')});
  members.push_back({"aclImdb/test/neg/9_1.txt", ""});
  Write(members);
  const Dataset test = Read(archive_, 10, 1, {Split::kTest}).at(Split::kTest);
  ASSERT_EQ(test.size(), 7);
  EXPECT_EQ(test.truncated, 1) << "'test neg 0' has exactly 10 bytes";
  EXPECT_EQ(test.length(2), 9);
  EXPECT_EQ(test.length(3), 10);
  EXPECT_EQ(test.length(4), 0) << "a review without a byte is a sequence of length 0";
}

TEST_F(ImdbTest, TestIsReadOnlyWhenAskedFor) {
  std::vector<Member> members = SmallImdb(4);
  members.push_back({"aclImdb/test/pos/notes.txt", "not a review"});
  Write(members);
  EXPECT_EQ(Read(archive_, 1024, 1, kTraining).count(Split::kTest), 0u);
  EXPECT_THAT(Problem(archive_, {Split::kTest}),
              HasSubstr("'test/pos/notes.txt' is not called ID_RATING.txt"));
}

TEST_F(ImdbTest, MisnamedReviews) {
  for (const char* name :
       {"1.txt", "1_.txt", "_9.txt", "a_9.txt", "1_9.html", "1_9_3.txt", "1_9txt"}) {
    std::vector<Member> members = SmallImdb(2);
    members.push_back({Concat("aclImdb/train/pos/", name), "x"});
    Write(members);
    EXPECT_THAT(Problem(archive_), AllOf(HasSubstr(archive_), HasSubstr(name))) << name;
  }
}

TEST_F(ImdbTest, OneClassEmptyOrTooSmall) {
  std::vector<Member> members = SmallImdb(3);
  std::erase_if(members, [](const Member& m) { return m.path.starts_with("aclImdb/train/pos/1"); });
  std::erase_if(members, [](const Member& m) { return m.path.starts_with("aclImdb/train/pos/2"); });
  Write(members);
  EXPECT_THAT(Problem(archive_),
              AllOf(HasSubstr(archive_), HasSubstr("one review under train/pos")));
  std::erase_if(members, [](const Member& m) { return m.path.starts_with("aclImdb/train/pos/0"); });
  Write(members);
  EXPECT_THAT(Problem(archive_),
              AllOf(HasSubstr(archive_), HasSubstr("no review under train/pos")));
  fs::remove(archive_);
  Unpack(members);
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("no review under train/pos"));
}

TEST_F(ImdbTest, ReviewThatIsThereTwice) {
  std::vector<Member> members = SmallImdb(3);
  members.push_back({"aclImdb/./test/pos/0_9.txt", "again"});
  Write(members);
  EXPECT_THAT(Problem(archive_), HasSubstr("test/pos/0_9.txt is there twice"));
}

TEST_F(ImdbTest, AnotherArchive) {
  Write({{"cifar-10-batches-bin/test_batch.bin", "x"}});
  EXPECT_THAT(Problem(archive_), AllOf(HasSubstr(archive_), HasSubstr("expected aclImdb/")));
}

TEST_F(ImdbTest, WrongFolder) {
  EXPECT_THAT(Problem(folder_.string()),
              AllOf(HasSubstr(folder_.string()), HasSubstr("without train/ and test/")));
  Write(SmallImdb(2));
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("use --data " + archive_));
  EXPECT_THAT(Problem((folder_ / "nowhere").string()), HasSubstr("no such file"));
}

TEST_F(ImdbTest, FolderWithAFolderInPlaceOfAReview) {
  Unpack(SmallImdb(2));
  fs::create_directories(folder_ / "aclImdb/test/neg/5_1.txt");
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("5_1.txt: not a plain file but a folder"));
}

TEST_F(ImdbTest, FolderWithALinkInPlaceOfAReview) {
  Unpack(SmallImdb(2));
  fs::create_symlink("/etc/hostname", folder_ / "aclImdb/train/pos/99_9.txt");
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("99_9.txt: is a link"));
}

}  // namespace
}  // namespace hkt::data::imdb
