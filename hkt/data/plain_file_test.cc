// What stands where a file of data is expected and is none: every task says so, and none waits for
// the other end of a pipe, with the cache (which hashes the files first) and without.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "hkt/data/archive_test_util.h"
#include "hkt/data/listops_folder.h"
#include "hkt/data/task.h"
#include "hkt/io/file.h"

namespace hkt::data {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class PlainFileTest : public ArchiveFolderTest {
 protected:
  PlainFileTest() : ArchiveFolderTest("a.tar.gz") { ::alarm(60); }
  ~PlainFileTest() override {
    ::alarm(0);
    ::setenv("HKT_CACHE", "0", 1);
  }

  void ExpectNamed(const char* task, const fs::path& data, const fs::path& odd, const char* kind) {
    DataConfig config;
    config.task = task;
    config.preset = "tiny";
    config.data = data.string();
    for (const std::string& cache : {std::string("0"), (folder_ / "cache").string()}) {
      ::setenv("HKT_CACHE", cache.c_str(), 1);
      EXPECT_THAT(ProblemOf([&] {
                    LoadTask(config, {kAllSplits.begin(), kAllSplits.end()});
                  }),
                  AllOf(HasSubstr(odd.string() + ": not a"), HasSubstr(kind)))
          << task << " " << cache;
    }
  }

  // In place of a file that is there.
  void PutFifo(const fs::path& path) {
    ASSERT_TRUE(fs::remove(path)) << path;
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0) << path;
  }
};

TEST_F(PlainFileTest, AsTheData) {
  const fs::path fifo = folder_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const char* task : {"listops", "cifar10", "imdb", "text"}) {
    ExpectNamed(task, fifo, fifo, "a FIFO");
    ExpectNamed(task, "/dev/zero", "/dev/zero", "a device");
  }
}

TEST_F(PlainFileTest, InsideAFolder) {
  Unpack(SmallCifar10(1));
  for (const char* name : {"data_batch_2.bin", "batches.meta.txt"}) {
    const fs::path batch = folder_ / "cifar-10-batches-bin" / name;
    PutFifo(batch);
    ExpectNamed("cifar10", folder_, batch, "a FIFO");
    fs::remove(batch);
    Unpack(SmallCifar10(1));
  }
  Unpack(SmallImdb(3));
  const fs::path review = folder_ / "aclImdb/train/pos/1_9.txt";
  PutFifo(review);
  ExpectNamed("imdb", folder_, review, "a FIFO");

  const fs::path texts = folder_ / "texts";
  fs::create_directories(texts);
  io::WriteFileAtomically(texts / "train.tsv", "a\tx\nb\ty\na\tz\nb\tz\n");
  ASSERT_EQ(::mkfifo((texts / "test.csv").c_str(), 0600), 0);
  ExpectNamed("text", texts, texts / "test.csv", "a FIFO");

  const fs::path made = folder_ / "made";
  listops::WriteFolder(made.string(), listops::FindPreset("tiny"), 1);
  for (const char* name : {"validation.tsv", "manifest.json"}) {
    PutFifo(made / name);
    ExpectNamed("listops", made, made / name, "a FIFO");
  }
}

}  // namespace
}  // namespace hkt::data
