#include "hkt/data/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "hkt/base/error.h"
#include "hkt/data/archive_test_util.h"
#include "hkt/io/file.h"

namespace hkt::data {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

class ArchiveTest : public FolderTest {
 protected:
  std::map<std::string, std::string> ReadAll(size_t max_bytes = 1 << 20) {
    std::map<std::string, std::string> members;
    ReadArchive(
        path_, max_bytes, [](const std::string&) { return true; },
        [&](const std::string& path, const std::string& bytes) { members[path] = bytes; });
    return members;
  }

  std::string Problem() {
    return ProblemOf([this] { ReadAll(); });
  }

  std::string ProblemWith(const Member& member) {
    WriteArchive(path_, {{"good.txt", "good"}, member}, Compression::kNone);
    return Problem();
  }

  std::string path_ = (folder_ / "a.tar").string();
};

TEST_F(ArchiveTest, PlainGzipBzip2Xz) {
  for (Compression compression :
       {Compression::kNone, Compression::kGzip, Compression::kBzip2, Compression::kXz}) {
    WriteArchive(
        path_,
        {{"./b//c.txt", std::string("x\0\xff\r\n", 5)}, {"b/", "", Member::kFolder}, {"a.txt", ""}},
        compression);
    EXPECT_THAT(ReadAll(),
                ElementsAre(Pair("a.txt", ""), Pair("b/c.txt", std::string("x\0\xff\r\n", 5))));
  }
}

TEST_F(ArchiveTest, OnlyTheFirstBytesOfWhatIsWanted) {
  WriteArchive(path_,
               {{"a", std::string(100000, 'a')}, {"b", "bbb"}, {"c", std::string(10000, 'c')}},
               Compression::kXz);
  std::map<std::string, std::string> members;
  ReadArchive(
      path_, 5000, [](const std::string& path) { return path != "b"; },
      [&](const std::string& path, const std::string& bytes) { members[path] = bytes; });
  EXPECT_THAT(members,
              ElementsAre(Pair("a", std::string(5000, 'a')), Pair("c", std::string(5000, 'c'))));
}

TEST_F(ArchiveTest, Missing) {
  EXPECT_THAT(Problem(), AllOf(HasSubstr(path_), HasSubstr("no such file")));
}

TEST_F(ArchiveTest, FolderInstead) {
  path_ = folder_.string();
  EXPECT_THAT(Problem(), HasSubstr("not a plain file"));
}

TEST_F(ArchiveTest, NoArchive) {
  for (const std::string& content :
       {std::string(), std::string("<html>not found</html>"), std::string(5000, 'x')}) {
    io::WriteFileAtomically(path_, content);
    EXPECT_THAT(Problem(), AllOf(HasSubstr(path_), HasSubstr("no readable .tar")))
        << content.size();
  }
}

TEST_F(ArchiveTest, CutShortAnywhere) {
  // Text that does not compress to nothing, so that the cuts fall inside members.
  std::vector<Member> members;
  uint32_t state = 1;
  for (int i = 0; i < 20; ++i) {
    std::string bytes(2000, '\0');
    for (char& c : bytes) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    members.push_back({Concat("m", i), bytes});
  }
  for (Compression compression : {Compression::kNone, Compression::kGzip, Compression::kXz}) {
    WriteArchive(path_, members, compression);
    const std::string whole = io::ReadFile(path_);
    for (int tenth = 1; tenth < 10; ++tenth) {
      io::WriteFileAtomically(path_, whole.substr(0, whole.size() * tenth / 10));
      EXPECT_THAT(Problem(), AllOf(HasSubstr(path_), HasSubstr("get it again"))) << tenth;
    }
  }
}

TEST_F(ArchiveTest, DamagedInside) {
  WriteArchive(path_, {{"a", std::string(50000, 'a')}, {"b", std::string(50000, 'b')}},
               Compression::kXz);
  std::string bytes = io::ReadFile(path_);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 0x55);
  io::WriteFileAtomically(path_, bytes);
  EXPECT_THAT(Problem(), AllOf(HasSubstr(path_), HasSubstr("get it again")));
}

// The archive inside ends where a block of reading ends, so that nobody would look at the checksums
// behind it who did not mean to.
TEST_F(ArchiveTest, ChecksumsAtTheVeryEnd) {
  constexpr size_t kTarBytes = 5 * 65536;  // a member, its header and the end of two empty blocks
  std::string bytes(kTarBytes - 512 - 1024, '\0');
  uint32_t state = 1;
  for (char& c : bytes) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  for (const auto& [compression, last] :
       {std::pair{Compression::kGzip, 8}, {Compression::kBzip2, 5}, {Compression::kXz, 20}}) {
    WriteArchive(path_, {{"m", bytes}}, compression);
    const std::string whole = io::ReadFile(path_);
    EXPECT_EQ(Problem(), "");
    for (int i = 2; i <= last; ++i) {
      std::string damaged = whole;
      damaged[whole.size() - i] = static_cast<char>(damaged[whole.size() - i] ^ 16);
      io::WriteFileAtomically(path_, damaged);
      EXPECT_THAT(Problem(), AllOf(HasSubstr(path_), HasSubstr("get it again")))
          << i << " bytes from the end, " << static_cast<int>(compression);
      io::WriteFileAtomically(path_, whole.substr(0, whole.size() - i));
      EXPECT_THAT(Problem(), AllOf(HasSubstr(path_), HasSubstr("get it again"))) << i;
    }
  }
}

TEST_F(ArchiveTest, SeveralGzipMembersAndFilling) {
  WriteArchive(path_, {{"a.txt", "x"}}, Compression::kGzip);
  const std::string one = io::ReadFile(path_);
  io::WriteFileAtomically(path_, one + std::string(700, '\0'));
  EXPECT_THAT(ReadAll(), ElementsAre(Pair("a.txt", "x")));
  io::WriteFileAtomically(path_, one + one);
  EXPECT_THAT(ReadAll(), ElementsAre(Pair("a.txt", "x"))) << "the first archive's end is the end";
  io::WriteFileAtomically(path_, one + "something");
  EXPECT_THAT(Problem(), HasSubstr("get it again"));
}

TEST_F(ArchiveTest, FromMemory) {
  for (Compression compression : {Compression::kNone, Compression::kGzip, Compression::kXz}) {
    WriteArchive(path_, {{"a.txt", "x"}}, compression);
    const std::string content = io::ReadFile(path_);
    std::map<std::string, std::string> members;
    ReadArchive(
        content, "memory", 100, [](const std::string&) { return true; },
        [&](const std::string& path, const std::string& bytes) { members[path] = bytes; });
    EXPECT_THAT(members, ElementsAre(Pair("a.txt", "x")));
    EXPECT_THROW(ReadArchive(
                     std::string_view(content).substr(0, std::min<size_t>(500, content.size() / 2)),
                     "memory", 100, [](const std::string&) { return true; },
                     [](const std::string&, const std::string&) {}),
                 Error);
  }
}

TEST_F(ArchiveTest, ClimbingAndAbsolutePathsAndLinksAreRefused) {
  EXPECT_THAT(ProblemWith({"../evil.txt", "x"}),
              AllOf(HasSubstr(path_), HasSubstr("'../evil.txt' climbs out")));
  EXPECT_THAT(ProblemWith({"a/../../evil.txt", "x"}), HasSubstr("climbs out"));
  EXPECT_THAT(ProblemWith({"a/..", "", Member::kFolder}), HasSubstr("climbs out"));
  EXPECT_THAT(ProblemWith({"/etc/evil", "x"}), HasSubstr("'/etc/evil' has an absolute path"));
  EXPECT_THAT(ProblemWith({"a/link", "/etc/passwd", Member::kSymbolicLink}),
              HasSubstr("'a/link' is a link"));
  EXPECT_THAT(ProblemWith({"a/link", "good.txt", Member::kHardLink}),
              HasSubstr("'a/link' is a link"));
  EXPECT_EQ(ProblemWith({"a..b/..c", "x"}), "") << "dots in a name climb nowhere";
  // Nothing was written: the folder holds the archive alone.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

}  // namespace
}  // namespace hkt::data
