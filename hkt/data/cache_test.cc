#include "hkt/data/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "hkt/base/error.h"
#include "hkt/base/warn.h"
#include "hkt/data/archive_test_util.h"
#include "hkt/io/file.h"

namespace hkt::data {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CacheTest : public FolderTest {
 protected:
  void SetUp() override {
    ::setenv("HKT_CACHE", cache_.c_str(), 1);
    SetWarningSink([this](const std::string& text) { warnings_.push_back(text); });
  }
  void TearDown() override {
    ::setenv("HKT_CACHE", "0", 1);
    SetWarningSink({});
  }

  // A configuration that reads an archive of `each` reviews.
  DataConfig Imdb(int each) {
    DataConfig config;
    config.task = "imdb";
    config.data = (folder_ / "aclImdb_v1.tar.gz").string();
    WriteArchive(config.data, SmallImdb(each), Compression::kGzip);
    return config;
  }

  std::vector<fs::path> Entries() const {
    std::vector<fs::path> files;
    for (const CacheEntry& entry : ListCache()) files.push_back(entry.file);
    return files;
  }

  fs::path cache_ = folder_ / "cache";
  std::vector<std::string> warnings_;
};

void ExpectEqual(const Dataset& a, const Dataset& b) {
  EXPECT_EQ(a.channels, b.channels);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.offsets, b.offsets);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.truncated, b.truncated);
}

void ExpectEqual(const LoadedTask& a, const LoadedTask& b) {
  EXPECT_EQ(a.info.classes, b.info.classes);
  ASSERT_EQ(a.splits.size(), b.splits.size());
  for (const auto& [split, dataset] : a.splits) ExpectEqual(dataset, b.splits.at(split));
}

const std::set<Split> kTraining = {Split::kTrain, Split::kValidation};

TEST_F(CacheTest, TheSecondTimeNothingIsRead) {
  const DataConfig config = Imdb(20);
  const LoadedTask first = LoadTask(config, kTraining);
  ASSERT_EQ(Entries().size(), 2u) << "of the test set nothing was kept";
  // A byte more behind the checksums of an entry would be found; equal times tell whether it was
  // written again.
  const auto written = fs::last_write_time(Entries()[0]);
  ExpectEqual(LoadTask(config, kTraining), first);
  ExpectEqual(LoadTask(config, {Split::kTrain}).splits.at(Split::kTrain),
              first.splits.at(Split::kTrain));
  EXPECT_EQ(fs::last_write_time(Entries()[0]), written);
  EXPECT_THAT(warnings_, IsEmpty());
  // And it is the entry that is believed: another one under its name and key is what comes out.
  LoadTask(config, {Split::kTest});
  EXPECT_EQ(Entries().size(), 3u);
}

TEST_F(CacheTest, AFolderThatIsNone) {
  const DataConfig config = Imdb(2);
  io::WriteFileAtomically(cache_, "a file");
  EXPECT_EQ(LoadTask(config, kTraining).splits.size(), 2u);
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr(cache_.string()),
                                           HasSubstr("going on without the cache"))));
  for (const auto& job : {std::function<void()>(ListCache), std::function<void()>(ClearCache)}) {
    EXPECT_THAT(
        ProblemOf(job),
        HasSubstr(cache_.string() + ": the cache is not a folder but a plain file; HKT_CACHE"));
  }
  ::setenv("HKT_CACHE", "some/../place", 1);
  EXPECT_EQ(CacheFolder(), fs::current_path() / "place");
  ::setenv("HKT_CACHE", "1", 1);  // "on"
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  EXPECT_EQ(CacheFolder(), "/x/hkt");
  ::unsetenv("XDG_CACHE_HOME");
}

TEST_F(CacheTest, EveryOptionAndTheSourceHaveTheirOwnEntries) {
  DataConfig config = Imdb(20);
  const auto validation = [&] {
    return LoadTask(config, {Split::kValidation}).splits.at(Split::kValidation);
  };
  const Dataset first = validation();
  config.seq_len = 8;
  EXPECT_EQ(validation().length(0), 8);
  config.seq_len.reset();
  config.data_seed = 2;
  EXPECT_NE(validation().tokens, first.tokens);
  config.data_seed = 1;
  EXPECT_EQ(Entries().size(), 3u);
  // The same name, size and even time, but other content.
  std::vector<Member> members = SmallImdb(20);
  for (Member& member : members) {
    for (char& c : member.bytes) c = c == ' ' ? '_' : c;
  }
  const auto time = fs::last_write_time(config.data);
  WriteArchive(config.data, members, Compression::kGzip);
  fs::last_write_time(config.data, time);
  EXPECT_NE(validation().tokens, first.tokens);
  EXPECT_EQ(Entries().size(), 4u);
  // Another folder, the content of the first: nothing new.
  config = Imdb(20);
  fs::create_directories(folder_ / "elsewhere");
  const fs::path moved = folder_ / "elsewhere" / fs::path(config.data).filename();
  fs::rename(config.data, moved);
  config.data = moved.string();
  ExpectEqual(validation(), first);
  EXPECT_EQ(Entries().size(), 4u);
}

TEST_F(CacheTest, RgbAndGreyAreTwo) {
  DataConfig config;
  config.task = "cifar10";
  config.data = (folder_ / "cifar-10-binary.tar.gz").string();
  WriteArchive(config.data, SmallCifar10(1), Compression::kGzip);
  const LoadedTask grey = LoadTask(config, kTraining);
  config.rgb = true;
  const LoadedTask rgb = LoadTask(config, kTraining);
  EXPECT_EQ(Entries().size(), 4u);
  ExpectEqual(LoadTask(config, kTraining), rgb);
  config.rgb = false;
  ExpectEqual(LoadTask(config, kTraining), grey);
  // An unpacked folder is another source, whose files are looked into.
  for (const Member& member : SmallCifar10(1)) {
    if (member.kind != Member::kFile) continue;
    fs::create_directories((folder_ / member.path).parent_path());
    std::ofstream(folder_ / member.path, std::ios::binary) << member.bytes;
  }
  config.data = (folder_ / "cifar-10-batches-bin").string();
  ExpectEqual(LoadTask(config, kTraining), grey);
  EXPECT_EQ(Entries().size(), 6u);
  fs::resize_file(fs::path(config.data) / "data_batch_2.bin", 3073);
  EXPECT_THROW(LoadTask(config, kTraining), Error) << "not what it was when it was cached";
}

TEST_F(CacheTest, AnUnpackedFolderIsLookedAt) {
  DataConfig config;
  config.task = "imdb";
  config.data = (folder_ / "aclImdb").string();
  for (const Member& member : SmallImdb(4)) {
    if (member.kind != Member::kFile) continue;
    fs::create_directories((folder_ / member.path).parent_path());
    std::ofstream(folder_ / member.path, std::ios::binary) << member.bytes;
  }
  const LoadedTask first = LoadTask(config, kTraining);
  ExpectEqual(LoadTask(config, kTraining), first);
  EXPECT_EQ(Entries().size(), 2u);
  const fs::path review = folder_ / "aclImdb/train/pos/0_9.txt";
  const auto time = fs::last_write_time(review);
  std::ofstream(review, std::ios::binary) << "TRAIN pos 0";  // as long as before
  fs::last_write_time(review, time);                         // and as old
  EXPECT_NE(LoadTask(config, kTraining).splits.at(Split::kTrain).tokens,
            first.splits.at(Split::kTrain).tokens);
}

TEST_F(CacheTest, TextHasItsClassesInTheEntry) {
  DataConfig config;
  config.task = "text";
  config.data = (folder_ / "all.tsv").string();
  std::ofstream file(config.data);
  for (int i = 0; i < 30; ++i) file << (i % 2 ? "yes\t" : "no\t") << i << "\n";
  file.close();
  const LoadedTask first = LoadTask(config, kTraining);
  EXPECT_THAT(first.info.classes, ElementsAre("no", "yes"));
  ExpectEqual(LoadTask(config, kTraining), first);
  const LoadedTask other = LoadTask(config, kTraining, {"maybe", "no", "yes"});
  EXPECT_THAT(other.splits.at(Split::kTrain).labels, Each(AnyOf(1, 2)));
  EXPECT_THAT(other.info.classes, ElementsAre("maybe", "no", "yes"));
  EXPECT_EQ(Entries().size(), 4u);
}

TEST_F(CacheTest, BrokenEntriesAreFoundAndMadeAnew) {
  const DataConfig config = Imdb(10);
  const LoadedTask first = LoadTask(config, kTraining);
  const fs::path entry = Entries()[0];
  const std::string whole = io::ReadFile(entry);
  std::string flipped = whole;
  flipped[whole.size() - 9] = static_cast<char>(flipped[whole.size() - 9] ^ 1);
  for (const std::string& broken :
       {std::string(), whole.substr(0, 5), whole.substr(0, whole.size() / 2),
        whole.substr(0, whole.size() - 1), whole + "x", flipped, std::string(5000, 'x')}) {
    warnings_.clear();
    SetWarningSink([this](const std::string& text) { warnings_.push_back(text); });
    io::WriteFileAtomically(entry, broken);
    ExpectEqual(LoadTask(config, kTraining), first);
    ASSERT_EQ(warnings_.size(), 1u);
    EXPECT_THAT(warnings_[0], AllOf(HasSubstr(entry.string()), HasSubstr("made anew")));
    EXPECT_EQ(io::ReadFile(entry), whole);
  }
}

TEST_F(CacheTest, AnEntryUnderAnotherName) {
  const DataConfig config = Imdb(10);
  const LoadedTask first = LoadTask(config, kTraining);
  const std::vector<fs::path> entries = Entries();
  fs::copy_file(entries[1], entries[0], fs::copy_options::overwrite_existing);
  ExpectEqual(LoadTask(config, kTraining), first);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_[0], HasSubstr("not the entry that its name says"));
}

TEST_F(CacheTest, AFolderThatCannotBeUsedIsAWarning) {
  std::ofstream(cache_) << "a file where the folder should be";
  const DataConfig config = Imdb(10);
  const LoadedTask first = LoadTask(config, kTraining);
  EXPECT_EQ(first.splits.at(Split::kTrain).size(), 18);
  ASSERT_FALSE(warnings_.empty());
  EXPECT_THAT(warnings_[0], AllOf(HasSubstr(cache_.string()), HasSubstr("without the cache")));
}

TEST_F(CacheTest, WhereItLies) {
  const char* home = std::getenv("HOME");
  const std::string old_home = home == nullptr ? "" : home;
  ::setenv("HKT_CACHE", "", 1);
  ::setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(CacheFolder(), fs::path("/somewhere/hkt"));
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(CacheFolder(), fs::path("/home/me/.cache/hkt"));
  ::unsetenv("XDG_CACHE_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(CacheFolder(), std::nullopt);
  ::setenv("HOME", old_home.c_str(), 1);
  ::setenv("HKT_CACHE", "0", 1);
  EXPECT_EQ(CacheFolder(), std::nullopt);
  LoadTask(Imdb(5), kTraining);
  EXPECT_FALSE(fs::exists(cache_));
}

TEST_F(CacheTest, ListAndClear) {
  EXPECT_TRUE(ListCache().empty());
  EXPECT_EQ(ClearCache(), 0);
  const DataConfig config = Imdb(10);
  LoadTask(config, kTraining);
  std::vector<CacheEntry> entries = ListCache();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].task, "imdb");
  EXPECT_EQ(entries[0].split, "train");
  EXPECT_EQ(entries[0].examples, 18);
  EXPECT_EQ(entries[0].path, config.data);
  EXPECT_THAT(entries[0].options, HasSubstr("seq_len=1024 data_seed=1"));
  EXPECT_EQ(entries[0].bytes, fs::file_size(entries[0].file));
  EXPECT_TRUE(entries[0].ok);
  fs::resize_file(entries[1].file, 100);
  std::ofstream(cache_ / "notes.txt") << "mine";
  std::ofstream(cache_ / (entries[0].file.filename().string() + ".tmp-123")) << "left behind";
  entries = ListCache();
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_FALSE(entries[2].ok);
  EXPECT_EQ(ClearCache(), 3);
  EXPECT_TRUE(fs::exists(cache_ / "notes.txt"));
  EXPECT_TRUE(ListCache().empty());
}

TEST_F(CacheTest, TwoProcessesAtOnce) {
  const DataConfig config = Imdb(200);
  const LoadedTask first = LoadTask(config, kTraining);
  ClearCache();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {  // no gtest in here
      SetWarningSink([](const std::string&) { ::_exit(3); });
      for (int round = 0; round < 5; ++round) {
        const LoadedTask mine = LoadTask(config, kTraining);
        if (mine.splits.at(Split::kTrain).tokens != first.splits.at(Split::kTrain).tokens)
          ::_exit(4);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  ExpectEqual(LoadTask(config, kTraining), first);
  EXPECT_EQ(Entries().size(), 2u);
  EXPECT_THAT(warnings_, IsEmpty());
}

}  // namespace
}  // namespace hkt::data
