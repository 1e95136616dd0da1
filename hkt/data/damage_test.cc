// Damaged input of every kind: files that were cut, and files with a bit that flipped, at random
// places of a fixed seed. A cut file is one clear error, or what is read is right; a flipped one
// never crashes or hangs, and where the format has checksums (.gz, .bz2, .xz, the folder of 'hkt
// data make', the cache) it is found: an error that names the file, or nothing of the content
// changed (a date in a header).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/base/warn.h"
#include "hkt/data/archive_test_util.h"
#include "hkt/data/cache.h"
#include "hkt/data/cifar10.h"
#include "hkt/data/listops_folder.h"
#include "hkt/data/task.h"
#include "hkt/io/file.h"

namespace hkt::data {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int kTimes = 20;
const std::set<Split> kAll(kAllSplits.begin(), kAllSplits.end());

bool operator==(const LoadedTask& a, const LoadedTask& b) {
  if (a.info.classes != b.info.classes || a.splits.size() != b.splits.size()) return false;
  for (const auto& [split, x] : a.splits) {
    const Dataset& y = b.splits.at(split);
    if (x.tokens != y.tokens || x.offsets != y.offsets || x.labels != y.labels ||
        x.truncated != y.truncated) {
      return false;
    }
  }
  return true;
}

class DamageTest : public FolderTest {
 protected:
  void SetUp() override {
    SetWarningSink([this](const std::string&) { ++warnings_; });
  }
  void TearDown() override { SetWarningSink({}); }

  // What reading gives; none where it is an Error, whose text is then in message_. Whatever else is
  // thrown fails the test.
  std::optional<LoadedTask> Load(const DataConfig& config) {
    message_.clear();
    try {
      return LoadTask(config, kAll);
    } catch (const Error& error) {
      message_ = error.what();
      EXPECT_NE(message_, "");
      return std::nullopt;
    }
  }

  std::string Flipped(std::string bytes) {
    const uint64_t bit = random_.Below(bytes.size() * 8);
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    return bytes;
  }

  std::string Cut(const std::string& bytes) { return bytes.substr(0, random_.Below(bytes.size())); }

  // Writes every damaged form of `file` in turn and calls check(cut).
  template <class Check>
  void Damage(const fs::path& file, Check&& check) {
    const std::string whole = io::ReadFile(file);
    for (int i = 0; i < 2 * kTimes && !HasFailure(); ++i) {
      const bool cut = i < kTimes;
      const std::string damaged = cut ? Cut(whole) : Flipped(whole);
      SCOPED_TRACE(Concat(file.string(), cut ? " cut to " : " with a flipped bit, ", damaged.size(),
                          " bytes, case ", i));
      io::WriteFileAtomically(file, damaged);
      check(cut);
    }
    io::WriteFileAtomically(file, whole);
  }

  // Of a format with checksums.
  void ExpectFound(const DataConfig& config, const fs::path& file) {
    const std::optional<LoadedTask> whole = Load(config);
    ASSERT_TRUE(whole.has_value()) << message_;
    int found = 0;
    Damage(file, [&](bool cut) {
      const std::optional<LoadedTask> read = Load(config);
      if (read) {
        EXPECT_FALSE(cut) << "read without a word";
        EXPECT_TRUE(*read == *whole) << "read as something else";
      } else {
        ++found;
        EXPECT_THAT(message_, HasSubstr(file.string()));
      }
    });
    EXPECT_GE(found, kTimes + kTimes / 2);
    EXPECT_TRUE(Load(config).has_value()) << "the file is whole again";
  }

  DataConfig Config(const char* task, const fs::path& data) {
    DataConfig config;
    config.task = task;
    config.data = data.string();
    config.preset = "tiny";
    return config;
  }

  Random random_{{20260901}};
  std::string message_;
  int warnings_ = 0;
};

// Long enough not to be all header.
std::vector<Member> Reviews() {
  std::vector<Member> members = SmallImdb(30);
  Random random({3});
  for (Member& member : members) {
    if (!member.path.ends_with(".txt")) continue;
    for (int i = 0; i < 200; ++i) member.bytes += static_cast<char>(random.Below(256));
  }
  return members;
}

TEST_F(DamageTest, ArchivesOfImdb) {
  for (const auto& [ending, compression] : {std::pair{".gz", Compression::kGzip},
                                            {".bz2", Compression::kBzip2},
                                            {".xz", Compression::kXz}}) {
    const fs::path file = folder_ / Concat("aclImdb_v1.tar", ending);
    WriteArchive(file.string(), Reviews(), compression);
    ExpectFound(Config("imdb", file), file);
  }
}

TEST_F(DamageTest, ArchivesOfCifar10) {
  for (const auto& [ending, compression] :
       {std::pair{".gz", Compression::kGzip}, {".xz", Compression::kXz}}) {
    const fs::path file = folder_ / Concat("cifar-10-binary.tar", ending);
    WriteArchive(file.string(), SmallCifar10(1), compression);
    ExpectFound(Config("cifar10", file), file);
  }
}

// Without checksums: a cut one is found by tar's own end, of a flipped one nothing is promised but
// that it is read or refused.
TEST_F(DamageTest, PlainArchives) {
  const fs::path file = folder_ / "aclImdb_v1.tar";
  WriteArchive(file.string(), Reviews(), Compression::kNone);
  const uintmax_t size = fs::file_size(file);
  Damage(file, [&](bool cut) {
    const bool read = Load(Config("imdb", file)).has_value();
    // The last 10 KiB block holds the end and filling behind it.
    if (cut && fs::file_size(file) + 10240 < size) {
      EXPECT_FALSE(read);
    }
  });
}

TEST_F(DamageTest, FilesOfCifar10) {
  for (const Member& member : SmallCifar10(1)) {
    if (member.kind != Member::kFile) continue;
    fs::create_directories((folder_ / member.path).parent_path());
    io::WriteFileAtomically(folder_ / member.path, member.bytes);
  }
  const fs::path root = folder_ / "cifar-10-batches-bin";
  const DataConfig config = Config("cifar10", root);
  ASSERT_TRUE(Load(config).has_value()) << message_;
  for (const char* name : {"data_batch_1.bin", "data_batch_4.bin", "test_batch.bin"}) {
    Damage(root / name, [&](bool cut) {
      const bool read = Load(config).has_value();
      if (cut) {
        EXPECT_FALSE(read);
      }
      if (!read) {
        EXPECT_THAT(message_, HasSubstr(root.string()));
      }
    });
  }
  Damage(root / "batches.meta.txt", [&](bool) { Load(config); });
}

TEST_F(DamageTest, FoldersOfListOps) {
  const fs::path root = folder_ / "tiny";
  listops::WriteFolder(root.string(), listops::FindPreset("tiny"), 1);
  for (const char* name : {"train.tsv", "test.tsv"})
    ExpectFound(Config("listops", root), root / name);
  // Much of the manifest only tells people something.
  const DataConfig config = Config("listops", root);
  const std::optional<LoadedTask> whole = Load(config);
  Damage(root / "manifest.json", [&](bool cut) {
    const std::optional<LoadedTask> read = Load(config);
    if (cut && !read) {
      EXPECT_THAT(message_, HasSubstr("manifest.json"));
    }
    if (read) {
      EXPECT_TRUE(*read == *whole);
    }
  });
}

// A text file that was cut is a shorter text file. What is left of it is read as before.
TEST_F(DamageTest, LabelledText) {
  std::string lines, csv = "label,text\n";
  for (int i = 0; i < 300; ++i) {
    const char* label = i % 3 == 0 ? "a" : "b";
    lines += Concat(label, "\ttext ", i, " of some length\n");
    csv += Concat(label, ",\"text \"\"", i, "\"\",\nof some length\"\n");
  }
  for (const auto& [name, content] : {std::pair{"all.tsv", &lines}, {"all.csv", &csv}}) {
    const fs::path file = folder_ / name;
    io::WriteFileAtomically(file, *content);
    const DataConfig config = Config("text", file);
    ASSERT_TRUE(Load(config).has_value()) << message_;
    Damage(file, [&](bool) {
      if (const auto read = Load(config)) {
        int64_t examples = 0;
        for (const auto& [split, dataset] : read->splits) examples += dataset.size();
        EXPECT_LE(examples, 301);
        EXPECT_GE(read->info.classes.size(), 2u);
      } else {
        EXPECT_THAT(message_, HasSubstr(file.string()));
      }
    });
  }
}

TEST_F(DamageTest, EntriesOfTheCache) {
  const fs::path cache = folder_ / "cache", file = folder_ / "aclImdb_v1.tar.gz";
  WriteArchive(file.string(), Reviews(), Compression::kGzip);
  ::setenv("HKT_CACHE", cache.c_str(), 1);
  const DataConfig config = Config("imdb", file);
  const std::optional<LoadedTask> whole = Load(config);
  ASSERT_TRUE(whole.has_value());
  for (const CacheEntry& entry : ListCache()) {
    const std::string content = io::ReadFile(entry.file);
    Damage(entry.file, [&](bool) {
      SetWarningSink([this](const std::string&) { ++warnings_; });  // warnings are said once
      warnings_ = 0;
      const std::optional<LoadedTask> read = Load(config);
      ASSERT_TRUE(read.has_value()) << message_;
      EXPECT_TRUE(*read == *whole);
      EXPECT_EQ(warnings_, 1);
      EXPECT_EQ(io::ReadFile(entry.file), content) << "made anew";
    });
  }
  ::setenv("HKT_CACHE", "0", 1);
}

// Of a file of images for `hkt predict`.
TEST_F(DamageTest, FilesOfImages) {
  const std::string whole = Cifar10Record(1, 1) + Cifar10Record(2, 2);
  for (int i = 0; i < 2 * kTimes; ++i) {
    const std::string damaged = i < kTimes ? Cut(whole) : Flipped(whole);
    try {
      EXPECT_LE(cifar10::ParseImages(damaged, "x", i % 2).size(), 2);
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("x: "));
    }
  }
}

}  // namespace
}  // namespace hkt::data
