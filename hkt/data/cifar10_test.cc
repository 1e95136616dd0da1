#include "hkt/data/cifar10.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "hkt/base/error.h"
#include "hkt/data/archive_test_util.h"

namespace hkt::data::cifar10 {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

const std::set<Split> kAll(kAllSplits.begin(), kAllSplits.end());

std::string Image(uint8_t red, uint8_t green, uint8_t blue) {
  return std::string(kSeqLen, static_cast<char>(red)) +
         std::string(kSeqLen, static_cast<char>(green)) +
         std::string(kSeqLen, static_cast<char>(blue));
}

TEST(Cifar10Test, GreyOfPureColours) {
  EXPECT_EQ(Grey(255, 0, 0), 76);
  EXPECT_EQ(Grey(0, 255, 0), 150);
  EXPECT_EQ(Grey(0, 0, 255), 29);
  EXPECT_EQ(Grey(0, 0, 0), 0);
  EXPECT_EQ(Grey(255, 255, 255), 255);
  // Where 0.299 R + 0.587 G + 0.114 B rounds to another level.
  EXPECT_EQ(Grey(0, 0, 250), 28);
  EXPECT_EQ(Grey(0, 207, 35), 126);
}

TEST(Cifar10Test, AnAllBlackImageHas1024ValidSteps) {
  for (bool rgb : {false, true}) {
    const Dataset dataset = ParseRecords(std::string(1, '\3') + Image(0, 0, 0), "black", rgb);
    EXPECT_EQ(dataset.length(0), 1024);
    EXPECT_THAT(dataset.tokens, Each(rgb ? 0 : 1));
    const std::vector<int64_t> indices = {0, 0};
    const Batch batch = Gather(dataset, indices);
    EXPECT_EQ(batch.T, 1024);
    EXPECT_THAT(batch.lengths, ElementsAre(1024, 1024));
    EXPECT_EQ(batch.ids.size(), 2 * 1024u * (rgb ? 3 : 1));
  }
}

TEST(Cifar10Test, PlanesBecomeSteps) {
  const std::string record = Cifar10Record(7, 100);
  const Dataset grey = ParseRecords(record, "x", false), rgb = ParseRecords(record, "x", true);
  EXPECT_EQ(grey.labels, std::vector<int32_t>{7});
  EXPECT_EQ(grey.channels, 1);
  EXPECT_EQ(rgb.channels, 3);
  EXPECT_EQ(rgb.length(0), 1024);
  for (int i = 0; i < 1024; ++i) {
    uint8_t colour[3];
    for (int c = 0; c < 3; ++c) {
      colour[c] = static_cast<uint8_t>(record[1 + c * 1024 + i]);
      ASSERT_EQ(rgb.tokens[3 * i + c], colour[c]);
    }
    ASSERT_EQ(grey.tokens[i], Grey(colour[0], colour[1], colour[2]) + 1);
  }
}

TEST(Cifar10Test, DamagedRecords) {
  const std::string whole = Cifar10Record(0, 1) + Cifar10Record(9, 2);
  EXPECT_EQ(ParseRecords(whole, "x", false).size(), 2);
  EXPECT_THAT(ProblemOf([&] { ParseRecords(whole.substr(1), "x", false); }),
              HasSubstr("x: 6145 bytes are no whole number of records"));
  EXPECT_THAT(ProblemOf([] { ParseRecords("", "x", false); }), HasSubstr("x: 0 bytes"));
  std::string wrong = whole;
  wrong[3073] = 10;
  EXPECT_THAT(ProblemOf([&] { ParseRecords(wrong, "x", true); }),
              HasSubstr("x: the label of record 2 is 10, must be 0 ... 9"));
}

TEST(Cifar10Test, ImagesWithAndWithoutLabels) {
  const std::string image = Cifar10Record(4, 9).substr(1);
  EXPECT_EQ(ParseImages(image + image, "x", false).size(), 2);
  const Dataset labelled = ParseImages(Cifar10Record(4, 9), "x", false);
  EXPECT_EQ(labelled.labels[0], 4);
  EXPECT_EQ(ParseImages(image, "x", false).tokens, labelled.tokens);
  EXPECT_THAT(ProblemOf([&] { ParseImages(image.substr(5), "x", true); }),
              HasSubstr("x: 3067 bytes are no whole number of images"));
  EXPECT_NE(ProblemOf([] { ParseImages("", "x", true); }), "");
}

class Cifar10FileTest : public ArchiveFolderTest {
 protected:
  Cifar10FileTest() : ArchiveFolderTest("cifar-10-binary.tar.gz") {}

  fs::path Batch(const char* name) { return folder_ / "cifar-10-batches-bin" / name; }

  std::string Problem(const std::string& path, const std::set<Split>& splits = kAll) {
    return ProblemOf([&] { Read(path, false, 1, splits); });
  }
};

TEST_F(Cifar10FileTest, SplitsAreStratifiedBySeed) {
  Write(SmallCifar10(4));  // 200 for training, 20 a class
  const auto splits = Read(archive_, false, 1, kAll);
  EXPECT_EQ(splits.at(Split::kTrain).size(), 180);
  EXPECT_EQ(splits.at(Split::kValidation).size(), 20);
  EXPECT_EQ(splits.at(Split::kTest).size(), 40);
  EXPECT_THAT(LabelShares(splits.at(Split::kValidation), 10), Each(0.1));
  EXPECT_EQ(Read(archive_, false, 1, {Split::kValidation}).at(Split::kValidation).tokens,
            splits.at(Split::kValidation).tokens);
  EXPECT_NE(Read(archive_, false, 2, {Split::kValidation}).at(Split::kValidation).tokens,
            splits.at(Split::kValidation).tokens);
  // Nothing lost: the keys of the records are 0 ... 239, and the first red value tells them apart.
  int64_t sum = 0;
  const auto rgb = Read(archive_, true, 1, kAll);
  for (const auto& [split, dataset] : rgb) {
    EXPECT_EQ(dataset.size(), splits.at(split).size());
    for (int64_t i = 0; i < dataset.size(); ++i) sum += dataset.sequence(i)[0];
  }
  EXPECT_EQ(sum, 239 * 240 / 2);
}

TEST_F(Cifar10FileTest, FolderEqualsTheArchive) {
  Write(SmallCifar10(2));
  const auto packed = Read(archive_, true, 1, kAll);
  fs::remove(archive_);
  Unpack(SmallCifar10(2));
  for (const fs::path& path : {folder_, folder_ / "cifar-10-batches-bin"}) {
    const auto unpacked = Read(path.string(), true, 1, kAll);
    for (Split split : kAll) {
      EXPECT_EQ(unpacked.at(split).tokens, packed.at(split).tokens);
      EXPECT_EQ(unpacked.at(split).labels, packed.at(split).labels);
    }
  }
}

TEST_F(Cifar10FileTest, TestIsReadOnlyWhenAskedFor) {
  std::vector<Member> members = SmallCifar10(1);
  for (Member& member : members) {
    if (member.path.ends_with("test_batch.bin")) member.bytes = "damaged";
  }
  Write(members);
  EXPECT_EQ(Problem(archive_, {Split::kTrain, Split::kValidation}), "");
  EXPECT_THAT(Problem(archive_, {Split::kTest}), HasSubstr("test_batch.bin: 7 bytes"));
}

TEST_F(Cifar10FileTest, MissingTwiceOrShort) {
  const std::vector<Member> whole = SmallCifar10(2);
  std::vector<Member> members = whole;
  std::erase_if(members, [](const Member& m) { return m.path.ends_with("batch_3.bin"); });
  Write(members);
  EXPECT_THAT(Problem(archive_), AllOf(HasSubstr(archive_), HasSubstr("no data_batch_3.bin")));
  members = whole;
  members.push_back({"cifar-10-batches-bin/./data_batch_3.bin", Cifar10Record(1, 1)});
  Write(members);
  EXPECT_THAT(Problem(archive_), HasSubstr("data_batch_3.bin is there twice"));
  members = whole;
  for (Member& member : members) {
    if (member.path.ends_with("batch_3.bin")) member.bytes.resize(10 * kRecordBytes);
  }
  Write(members);
  EXPECT_THAT(Problem(archive_), HasSubstr("data_batch_3.bin holds 10 images and data_batch_1.bin "
                                           "20; one of them is cut short"));
}

TEST_F(Cifar10FileTest, FolderThatWasCut) {
  Unpack(SmallCifar10(2));
  fs::resize_file(Batch("test_batch.bin"), 10 * kRecordBytes);  // between two records
  EXPECT_THAT(Problem(folder_.string(), {Split::kTest}),
              AllOf(HasSubstr("test_batch.bin"), HasSubstr("cut short")));
  fs::remove(Batch("test_batch.bin"));
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("no test_batch.bin"));
  fs::create_symlink("/etc/hostname", Batch("test_batch.bin"));
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("test_batch.bin: is a link"));
  fs::remove(Batch("test_batch.bin"));
  fs::create_directories(Batch("test_batch.bin"));
  EXPECT_THAT(Problem(folder_.string()),
              HasSubstr("test_batch.bin: not a plain file but a folder"));
}

TEST_F(Cifar10FileTest, SomethingElse) {
  Write(SmallImdb(2));
  EXPECT_THAT(Problem(archive_), HasSubstr("the binary version of CIFAR-10"));
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("use --data " + archive_));
  EXPECT_THAT(Problem((folder_ / "nowhere").string()), HasSubstr("no such file"));
  fs::remove(archive_);
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("a folder without data_batch_1.bin"));
  std::vector<Member> members = SmallCifar10(1);
  for (Member& member : members) {
    if (member.path.ends_with(".txt")) member.bytes = "cat\ndog\n";
  }
  Write(members);
  EXPECT_THAT(Problem(archive_), HasSubstr("names the class 'cat' where 'airplane' is expected"));
}

// Pixel (y, x) of an image whose grey ids tell where they were.
data::Batch Positions(int64_t B) {
  data::Batch batch;
  batch.B = B;
  batch.T = kSeqLen;
  for (int64_t b = 0; b < B; ++b) {
    batch.indices.push_back(b);
    for (int64_t i = 0; i < kSeqLen; ++i) batch.ids.push_back(10'000 + i);
  }
  return batch;
}

TEST(Cifar10AugmentTest, ShiftsAndMirrors) {
  data::Batch batch = Positions(400);
  Augment(batch, /*seed=*/3, /*epoch=*/0);
  std::set<std::tuple<int64_t, int64_t, bool>> seen;
  for (int64_t b = 0; b < batch.B; ++b) {
    const int64_t* ids = batch.ids.data() + b * kSeqLen;
    // The middle never leaves the picture: it tells the shift.
    const int64_t centre = ids[16 * 32 + 16] - 10'000, right = ids[16 * 32 + 17] - 10'000;
    const bool mirrored = right < centre;
    const int64_t dy = centre / 32 - 16, dx = centre % 32 - (mirrored ? 15 : 16);
    ASSERT_LE(std::abs(dy), 4);
    ASSERT_LE(std::abs(dx), 4);
    seen.insert({dy, dx, mirrored});
    for (int64_t y = 0; y < 32; ++y) {
      for (int64_t x = 0; x < 32; ++x) {
        const int64_t from_y = y + dy, from_x = (mirrored ? 31 - x : x) + dx;
        const bool inside = from_y >= 0 && from_y < 32 && from_x >= 0 && from_x < 32;
        ASSERT_EQ(ids[y * 32 + x], inside ? 10'000 + from_y * 32 + from_x : 1);
      }
    }
  }
  EXPECT_GT(seen.size(), 120u) << "of 162 ways";
}

TEST(Cifar10AugmentTest, APureFunctionOfSeedEpochAndIndex) {
  data::Batch first = Positions(8), second = Positions(4), other = Positions(8),
              later = Positions(8);
  second.indices = {3, 2, 1, 0};
  Augment(first, 3, 5);
  Augment(second, 3, 5);
  Augment(other, 4, 5);
  Augment(later, 3, 6);
  for (int64_t b = 0; b < 4; ++b) {
    EXPECT_TRUE(std::equal(first.ids.begin() + b * kSeqLen, first.ids.begin() + (b + 1) * kSeqLen,
                           second.ids.begin() + (3 - b) * kSeqLen))
        << "the same image, whatever its place in a batch";
  }
  EXPECT_NE(first.ids, other.ids);
  EXPECT_NE(first.ids, later.ids);
}

TEST(Cifar10AugmentTest, ThreeChannelsMoveTogether) {
  const Dataset dataset = ParseRecords(Cifar10Record(1, 5), "x", true);
  const std::vector<int64_t> indices(50, 0);
  data::Batch batch = Gather(dataset, indices);
  std::iota(batch.indices.begin(), batch.indices.end(), 0);
  Augment(batch, 1, 0);
  for (size_t i = 0; i < batch.ids.size(); i += 3) {
    const bool black = batch.ids[i] == 0 && batch.ids[i + 1] == 0 && batch.ids[i + 2] == 0;
    if (black) continue;
    ASSERT_EQ((batch.ids[i] + 31) % 256, batch.ids[i + 1]);
    ASSERT_EQ((batch.ids[i] + 62) % 256, batch.ids[i + 2]);
  }
  data::Batch text;
  text.B = 1;
  text.T = 5;
  EXPECT_THROW(Augment(text, 1, 0), Error);
}

TEST(Cifar10AugmentTest, TheLoaderRepeatsItFromAnyPosition) {
  std::string records;
  for (int i = 0; i < 12; ++i) records += Cifar10Record(i % 10, 20 * i);
  const Dataset dataset = ParseRecords(records, "x", false);
  const TrainLoader::Change change = [](data::Batch& batch, int64_t epoch) {
    Augment(batch, 7, epoch);
  };
  TrainLoader loader(dataset, 5, 7, {0, 0}, change);
  for (int i = 0; i < 4; ++i) loader.Next();
  const Position position = loader.position();
  TrainLoader again(dataset, 5, 7, position, change), plain(dataset, 5, 7, position);
  for (int i = 0; i < 4; ++i) {
    const data::Batch next = loader.Next();
    EXPECT_EQ(again.Next().ids, next.ids);
    EXPECT_NE(plain.Next().ids, next.ids);
  }
}

}  // namespace
}  // namespace hkt::data::cifar10
