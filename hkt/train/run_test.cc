#include "hkt/train/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hkt/base/error.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/train/progress.h"
#include "hkt/train/signals.h"
#include "hkt/train/tiny_test_util.h"

namespace hkt::train {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

RunRequest Request(const std::filesystem::path& out, bool resume = false) {
  RunRequest request;
  request.out = out;
  request.resume = resume;
  return request;
}

Config Open(const RunRequest& request) {
  const Config config = PlanRun(request);
  OpenRunFolder(request, config);
  return config;
}

TEST(RunTest, NewRunStoresItsResolvedConfiguration) {
  const TemporaryFolder folder;
  RunRequest request = Request(folder.path() / "new" / "run");
  request.config.train.lr = 0.5;
  const Config planned = PlanRun(request);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "new"));  // a plan writes nothing
  const OpenRun run = OpenRunFolder(request, planned);
  EXPECT_EQ(planned.model.levels, std::optional<int64_t>(3));
  EXPECT_EQ(io::ToJson(run.folder.ReadConfig()), io::ToJson(planned));
  EXPECT_EQ(run.folder.ReadConfig().train.lr, 0.5);
}

TEST(RunTest, ResumeTakesTheStoredConfiguration) {
  const TemporaryFolder folder;
  RunRequest request = Request(folder.path());
  request.config.train.lr = 0.5;
  request.config.train.save_every = 7;
  Open(request);

  RunRequest resume = Request(folder.path(), true);
  resume.config.train.log_every =
      3;  // not given: a default of the program must not win over the run
  resume.config.train.max_time = 60;
  resume.config.train.save_every = 9;
  resume.given = {"max_time", "save_every"};
  const Config config = Open(resume);
  EXPECT_EQ(config.train.lr, 0.5);
  EXPECT_EQ(config.train.log_every, TrainConfig().log_every);
  EXPECT_EQ(config.train.max_time, 60);
  EXPECT_EQ(config.train.save_every, 9);
}

TEST(RunTest, ResumeListsEveryContradiction) {
  const TemporaryFolder folder;
  RunRequest request = Request(folder.path());
  request.config.train.lr = 0.5;
  Open(request);

  RunRequest resume = Request(folder.path(), true);
  resume.config.train.steps = 5;
  resume.config.model.levels = 2;
  resume.config.train.threads = 3;
  resume.config.model.model = "hkt";
  resume.given = {"lr", "steps", "levels", "threads", "model"};
  EXPECT_THAT([&] { Open(resume); },
              ThrowsMessage<UsageError>(
                  AllOf(HasSubstr("lr is 0.001, not 0.5"), HasSubstr("steps is 5, not 1000"),
                        HasSubstr("levels is 2, not 3"), Not(HasSubstr("threads")),
                        Not(HasSubstr("model is")), HasSubstr("--out"))));
}

TEST(RunTest, WrongFolders) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { Open(Request("", true)); },
              ThrowsMessage<UsageError>(HasSubstr("--resume needs")));
  EXPECT_THAT([&] { Open(Request(folder.path() / "none", true)); },
              ThrowsMessage<UsageError>(HasSubstr("nothing to resume")));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "none"));
  io::WriteFileAtomically(folder.path() / "state.safetensors", "");
  EXPECT_THAT(
      [&] { Open(Request(folder.path())); },
      ThrowsMessage<UsageError>(AllOf(HasSubstr("already holds a run"), HasSubstr("--resume"))));
  RunRequest wrong = Request(folder.path() / "wrong");
  wrong.config.train.lr = -1;
  EXPECT_THROW(Open(wrong), UsageError);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "wrong"));
}

TEST(RunTest, OneProcessAFolder) {
  const TemporaryFolder folder;
  const RunRequest request = Request(folder.path());
  const OpenRun first = OpenRunFolder(request, PlanRun(request));
  EXPECT_THAT([&] { Open(Request(folder.path(), true)); },
              ThrowsMessage<Error>(HasSubstr("another process")));
}

TEST(SignalTest, FirstIsNotedSecondEndsTheProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    const SignalGuard guard;
    ::raise(SIGTERM);
    if (SignalGuard::Received() != SIGTERM) ::_exit(1);
    ::raise(SIGINT);
    ::_exit(2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
}

TEST(SignalTest, IgnoredStaysIgnored) {
  ::signal(SIGINT, SIG_IGN);
  {
    const SignalGuard guard;
    ::raise(SIGINT);
    EXPECT_EQ(SignalGuard::Received(), 0);
  }
  ::signal(SIGINT, SIG_DFL);
}

TEST(ProgressTest, Formats) {
  EXPECT_EQ(FormatDuration(0), "0:00");
  EXPECT_EQ(FormatDuration(59.6), "1:00");
  EXPECT_EQ(FormatDuration(3723), "1:02:03");
  EXPECT_EQ(FormatDuration(-5), "0:00");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(1000), "1,000");
  EXPECT_EQ(FormatCount(1234567), "1,234,567");
  EXPECT_EQ(FormatCount(-123), "-123");
  EXPECT_EQ(FormatCount(-123456), "-123,456");
}

}  // namespace
}  // namespace hkt::train
