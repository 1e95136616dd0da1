#include "hkt/io/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "hkt/base/error.h"
#include "hkt/io/checksum.h"
#include "hkt/io/json.h"
#include "hkt/io/json_lines.h"

namespace hkt::io {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Json = nlohmann::ordered_json;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  size_t FileCount() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / Concat("hkt_file_test_", ::getpid());
  const std::filesystem::path file_ = folder_ / "file";
};

// A disk that is full after `bytes`, as long as it lives.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    ::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_;
};

TEST_F(FileTest, WritesAndReadsEveryByte) {
  std::string content;
  for (int i = 0; i < 300'000; ++i) content += static_cast<char>(i * 7);
  WriteFileAtomically(file_, content);
  EXPECT_EQ(ReadFile(file_), content);
  WriteFileAtomically(file_, "");
  EXPECT_EQ(ReadFile(file_), "");
  EXPECT_EQ(FileCount(), 1u);  // no temporary file is left
}

TEST_F(FileTest, ReadsWhatHasNoSize) {
  EXPECT_THAT(ReadFile("/proc/self/status"), HasSubstr("VmPeak"));
}

TEST_F(FileTest, FailedWriteLeavesTheOldFile) {
  WriteFileAtomically(file_, "old");
  {
    const SizeLimit limit(1000);
    EXPECT_THAT([&] { WriteFileAtomically(file_, std::string(5000, 'x')); },
                ThrowsMessage<Error>(AllOf(HasSubstr(file_.string()), HasSubstr("too large"),
                                           HasSubstr("ulimit"), HasSubstr("unchanged"))));
  }
  EXPECT_EQ(ReadFile(file_), "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(FileTest, FileThatIsNotCommittedNeverWas) {
  WriteFileAtomically(file_, "old");
  {
    AtomicFile file(file_);
    file.Write("new");
    EXPECT_EQ(ReadFile(file_), "old");
  }
  EXPECT_EQ(ReadFile(file_), "old");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(FileTest, KillBeforeTheCommitLeavesTheOldFile) {
  WriteFileAtomically(file_, "old");
  const pid_t child = ::fork();
  if (child == 0) {
    AtomicFile file(file_);
    file.Write("new");
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(ReadFile(file_), "old");
  EXPECT_EQ(FileCount(), 2u);
  RemoveStaleTemporaries(folder_);
  EXPECT_EQ(FileCount(), 1u);
}

// Everything that is no plain file, by path: a folder, a FIFO that nobody writes to, a socket, a
// device.
class NotPlainTest : public FileTest {
 protected:
  void SetUp() override {
    FileTest::SetUp();
    ::alarm(60);  // waiting for a pipe's other end is what must not happen
    ASSERT_EQ(::mkfifo((folder_ / "fifo").c_str(), 0600), 0);
    socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
    const std::string path = (folder_ / "socket").string();
    ASSERT_LT(path.size(), sizeof(address.sun_path));
    path.copy(address.sun_path, path.size());
    ASSERT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    kinds_ = {{folder_, "a folder"},
              {folder_ / "fifo", "a FIFO"},
              {folder_ / "socket", "a socket"},
              {"/dev/zero", "a device"}};
  }
  void TearDown() override {
    ::alarm(0);
    ::close(socket_);
    FileTest::TearDown();
  }

  int socket_ = -1;
  std::vector<std::pair<std::filesystem::path, const char*>> kinds_;
};

TEST_F(NotPlainTest, IsNeitherReadNorReplacedNorAppendedTo) {
  const std::vector<std::function<void(const std::filesystem::path&)>> jobs = {
      [](const auto& path) { CheckPlainFile(path); }, [](const auto& path) { ReadFile(path); },
      [](const auto& path) { WriteFileAtomically(path, "x"); },
      [](const auto& path) { AppendToFile(path, "x"); }};
  for (const auto& [path, kind] : kinds_) {
    EXPECT_EQ(KindOf(path).find(kind), 0u) << KindOf(path);
    for (const auto& job : jobs) {
      EXPECT_THAT([&] { job(path); },
                  ThrowsMessage<Error>(AllOf(HasSubstr(path.string() + ": not a plain file but "),
                                             HasSubstr(kind))));
    }
    EXPECT_EQ(KindOf(path).find(kind), 0u) << "as it was";
  }
  EXPECT_EQ(FileCount(), 2u);  // no temporary file
  EXPECT_EQ(KindOf(folder_ / "none"), "nothing");
  EXPECT_THAT([&] { ReadFile(std::string("a\0b", 3)); },
              ThrowsMessage<Error>(HasSubstr(R"(a\x00b: a path cannot hold a NUL byte)")));
}

TEST_F(FileTest, NoMoreThanAskedFor) {
  WriteFileAtomically(file_, std::string(100'000, 'x'));
  EXPECT_EQ(ReadFile(file_, 70'000).size(), 70'000u);
  EXPECT_EQ(ReadFile(file_, 0), "");
  EXPECT_EQ(ReadFile(file_, 200'000).size(), 100'000u);
  const int descriptor = ::open(file_.c_str(), O_RDONLY);
  EXPECT_EQ(ReadStream(descriptor, "s", 100'000).size(), 100'000u);
  ::lseek(descriptor, 0, SEEK_SET);
  EXPECT_THAT([&] { ReadStream(descriptor, "s", 99'999); },
              ThrowsMessage<Error>(HasSubstr("s: more than")));
  ::close(descriptor);
}

TEST_F(FileTest, ASignalRemovesWhatIsHalfWritten) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = ::fork();
    if (child == 0) {
      CleanUpOnSignals();
      std::filesystem::create_directory(folder_ / "part");
      const RemovedOnSignal part(folder_ / "part"), inside(folder_ / "part" / "done");
      { const AtomicFile gone(folder_ / "gone"); }
      WriteFileAtomically(folder_ / "part" / "done", "x");
      AtomicFile file(file_);
      file.Write("new");
      ::kill(::getpid(), signal);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + signal);
    EXPECT_EQ(FileCount(), 0u);
  }
}

TEST_F(FileTest, MessagesNameTheFileAndTheRemedy) {
  EXPECT_THAT([&] { ReadFile(folder_ / "none"); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr((folder_ / "none").string()), HasSubstr("check the path"))));
  EXPECT_THAT([&] { ReadFile(folder_); }, ThrowsMessage<Error>(HasSubstr("name a file")));
  EXPECT_THAT([&] { WriteFileAtomically(folder_ / "none" / "file", "x"); },
              ThrowsMessage<Error>(HasSubstr("check the path")));
  WriteFileAtomically(file_, "");
  EXPECT_THAT([&] { CreateFolders(file_ / "below"); },
              ThrowsMessage<Error>(HasSubstr(file_.string())));
  EXPECT_THAT([&] { CreateFolders(file_); }, ThrowsMessage<Error>(HasSubstr(file_.string())));
  EXPECT_THAT(SystemMessage("write", "f", ENOSPC), HasSubstr("make room"));
  EXPECT_THAT(SystemMessage("write", "f", EROFS), HasSubstr("choose a place"));
}

TEST(ChecksumTest, IsXxh3WhateverThePieces) {
  EXPECT_EQ(Xxh3({}), "99aa06d3014798d86001c324468d497f");  // the value that the library documents
  std::string text;
  for (int i = 0; i < 5000; ++i) text += static_cast<char>(i * i);
  const std::string whole = Xxh3(std::as_bytes(std::span(text)));
  Xxh3Stream pieces;
  for (size_t i = 0; i < text.size(); i += 777)
    pieces.Update(std::string_view(text).substr(i, 777));
  EXPECT_EQ(pieces.Hex(), whole);
  text[2500] ^= 1;
  EXPECT_NE(Xxh3(std::as_bytes(std::span(text))), whole);
}

TEST_F(FileTest, JsonLinesAppendAndDrop) {
  for (int step : {10, 20, 30}) AppendJsonLine(file_, {{"kind", "train"}, {"step", step}});
  AppendJsonLine(file_, {{"kind", "note"}});
  ASSERT_EQ(ReadJsonLines(file_).size(), 4u);
  std::ofstream(file_, std::ios::app) << R"({"kind":"tra)";  // the process was killed here
  EXPECT_EQ(ReadJsonLines(file_).size(), 4u);
  DropLinesAfter(file_, 20);
  const auto lines = ReadJsonLines(file_);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1]["step"], 20);
  EXPECT_EQ(lines[2]["kind"], "note");
  AppendJsonLine(file_, {{"step", 21}});  // nothing of the cut line is before it
  EXPECT_EQ(ReadJsonLines(file_).back()["step"], 21);
  DropLinesAfter(folder_ / "none", 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "none"));
}

TEST_F(FileTest, JsonLineThatDoesNotFitIsTakenBack) {
  AppendJsonLine(file_, {{"step", 1}});
  {
    const SizeLimit limit(std::filesystem::file_size(file_) + 5);
    EXPECT_THROW(AppendJsonLine(file_, {{"step", 2}}), Error);
  }
  AppendJsonLine(file_, {{"step", 3}});
  const auto lines = ReadJsonLines(file_);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["step"], 3);
}

TEST_F(FileTest, DamagedJsonLineIsNamed) {
  WriteFileAtomically(file_, "{\"step\": 1}\nnonsense\n");
  EXPECT_THAT([&] { ReadJsonLines(file_); },
              ThrowsMessage<Error>(AllOf(HasSubstr(file_.string()), HasSubstr("line 2"))));
}

TEST(JsonTest, RefusesWhatIsNotOneDocument) {
  EXPECT_EQ(ParseJson<Json>(R"({"a": {"b": 1}, "c": [{"b": 2}, {"b": 3}]})", "file")["a"]["b"], 1);
  EXPECT_THAT([] { ParseJson<Json>(R"({"a": 1, "b": {"a": 2, "a": 3}})", "file"); },
              ThrowsMessage<Error>("file: the key 'a' stands there twice"));
  EXPECT_THAT([] { ParseJson<Json>("{\"a\": ", "file"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("file: not valid JSON"), HasSubstr("line 1"))));
  EXPECT_THAT([] { ParseJson<Json>(std::string("{}\0}", 4), "file"); },
              ThrowsMessage<Error>("file: not valid JSON: it has a NUL byte"));
  EXPECT_THAT([] { ParseJson<Json>(std::string(100'000, '['), "file"); },
              ThrowsMessage<Error>(HasSubstr("nested deeper")));
}

TEST(JsonTest, PrettyIsTheSameDocument) {
  const Json document = {{"a", {{"b", Json::array({1, 2, 3})}, {"c", Json::object()}}},
                         {"rows", Json::array({Json::array({1, 2}), Json::array({3, 4})})},
                         {"text", "line\n\xff"}};
  const std::string text = PrettyJson(document);
  EXPECT_EQ(ParseJson<Json>(text, "text")["rows"], document["rows"]);
  EXPECT_THAT(text, HasSubstr("\"b\": [1,2,3]"));
  EXPECT_THAT(text, HasSubstr("\n    [3,4]\n"));
}

}  // namespace
}  // namespace hkt::io
