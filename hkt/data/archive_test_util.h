#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace hkt::data {

// An empty folder of the test's own, removed behind it.
class FolderTest : public testing::Test {
 protected:
  FolderTest();
  ~FolderTest() override;

  std::filesystem::path folder_;
};

// The text of the Error that a job ends with; empty where it ends well.
std::string ProblemOf(const std::function<void()>& job);

// What goes into an archive of the tests.
struct Member {
  std::string path;
  std::string bytes;
  enum Kind { kFile, kFolder, kSymbolicLink, kHardLink } kind = kFile;
};

enum class Compression { kNone, kGzip, kBzip2, kXz };

void WriteArchive(const std::string& path, const std::vector<Member>& members,
                  Compression compression);

// With an archive in the folder, or what it holds.
class ArchiveFolderTest : public FolderTest {
 protected:
  explicit ArchiveFolderTest(const std::string& name) : archive_((folder_ / name).string()) {}

  void Write(const std::vector<Member>& members);  // the archive, gzip
  void Unpack(const std::vector<Member>& members);

  std::string archive_;
};

// The archive of that name, .tar.gz or .tar.xz, in the folder that the environment variable
// HKT_DATA names; empty where it is not set. A folder without it fails the test.
std::string RealArchive(const std::string& name);

// A small data set in the authors' layout, members in no order, `each` reviews a class and part.
// The review train/pos/ID_9.txt holds "train pos ID".
std::vector<Member> SmallImdb(int each);

// Small CIFAR-10 in the authors' layout: `each` records a class and batch, members in no order.
std::vector<Member> SmallCifar10(int each);

// One record: the label, then the planes, pixel i of channel c = (7 * i + 31 * c + key) % 256.
std::string Cifar10Record(int label, int key);

}  // namespace hkt::data
