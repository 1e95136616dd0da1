// The program is a shell script here: what it leaves in the run folder was prepared.

#include "hkt/report/reproduce.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/report/run_test_util.h"
#include "hkt/report/time_left.h"

namespace hkt::report {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

// Notes its arguments; "train" copies the prepared files of a run into --out, "eval" and "analyze"
// theirs.
constexpr const char* kProgram = R"(#!/bin/sh
echo "$@" >> "$PREPARED/calls"
case "$1" in
  train) run="$3"; mkdir -p "$run"
         cp "$PREPARED/${run##*/}/config.json" "$PREPARED/${run##*/}/model.safetensors" "$run"
         if [ -e "$PREPARED/fail-${run##*/}" ]; then echo "loss is not finite"; exit 3; fi
         if [ -e "$PREPARED/wait" ]; then
           sleep 30 & echo $$ $! > "$run.pids"; mv "$run.pids" "$PREPARED/pids-${run##*/}"; wait
         fi
         cp "$PREPARED/${run##*/}/metrics.jsonl" "$run" ;;
  eval) cp "$PREPARED/${2##*/}/eval.json" "$2" ;;
  analyze) cp "$PREPARED/${2##*/}/analysis.json" "$2" ;;
esac
)";

// A process that nobody has taken the status of yet, as one whose parent has gone, has ended.
bool Ends(int pid) {
  for (int i = 0; i < 100; ++i) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    if (::kill(pid, 0) != 0 || text.find(") Z ") != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

struct ReproduceTest : ::testing::Test {
  void SetUp() override {
    folder.Write("experiments/t/hkt.json",
                 R"({"row": "HKT", "group": "table", "seeds": [1, 2],
                     "config": {"levels": 2, "steps": 4}})");
    folder.Write("experiments/t/mha.json",
                 R"({"row": "MHA", "group": "table", "seeds": [1],
                     "config": {"model": "mha", "steps": 4}})");
    folder.Write("program.sh", kProgram);
    std::filesystem::permissions(folder.path() / "program.sh", std::filesystem::perms::owner_all);
    ::setenv("PREPARED", prepared().c_str(), 1);
    runs = ReadTier(places, "t");
    for (const ExperimentRun& run : runs) WriteFinishedRun(run, prepared() / run.id());
    request.settings.program = (folder.path() / "program.sh").string();
    request.settings.places = places;
    request.tier = "t";
    watcher.line = [this](const std::string& line) { lines += line + "\n"; };
  }
  ReproduceOutcome Run() { return Reproduce(request, watcher); }
  std::filesystem::path prepared() const { return folder.path() / "prepared"; }
  std::vector<std::string> Calls() const {
    std::vector<std::string> calls;
    std::ifstream file(prepared() / "calls");
    for (std::string line; std::getline(file, line);)
      calls.push_back(line.substr(0, line.find(' ')));
    return calls;
  }
  bool Done(const ExperimentRun& run) const { return std::filesystem::exists(places.result(run)); }

  TestFolder folder;
  Places places = folder.places();
  std::vector<ExperimentRun> runs;
  ReproduceRequest request;
  ReproduceWatcher watcher;
  std::string lines;
};

TEST_F(ReproduceTest, RunsWhatIsMissingAndNothingTwice) {
  request.only = {"hkt"};
  request.jobs = 1;
  EXPECT_THAT(Run().failed, IsEmpty());
  EXPECT_THAT(Calls(), ElementsAre("train", "eval", "analyze", "train", "eval", "analyze"));
  EXPECT_TRUE(Done(runs[0]) && !Done(runs[1]) && Done(runs[2]));
  const std::string before = io::ReadFile(places.result(runs[0]));
  request.only.clear();
  const ReproduceOutcome outcome = Run();
  EXPECT_EQ(Calls().size(), 8u);  // mha: no analysis of one level
  for (const PlannedRun& planned : outcome.plan) EXPECT_EQ(planned.state, RunState::kDone);
  EXPECT_EQ(io::ReadFile(places.result(runs[0])), before);
  lines.clear();
  Run();
  EXPECT_EQ(Calls().size(), 8u);
  EXPECT_THAT(lines, HasSubstr("nothing to do"));
  const Json rows = ToJson(outcome.plan, places);
  EXPECT_EQ(rows[1]["state"], "done");
  EXPECT_EQ(rows[1]["step"], 4);
}

TEST_F(ReproduceTest, FinishedRunsAreOnlyEvaluatedAndCollected) {
  WriteFinishedRun(runs[1], places.folder(runs[1]));
  std::filesystem::remove(io::RunFolder(places.folder(runs[1])).evaluation());
  WriteFinishedRun(runs[0], places.folder(runs[0]));
  std::filesystem::create_directories(places.folder(runs[2]));
  std::filesystem::copy_file(prepared() / "hkt-s2/config.json",
                             places.folder(runs[2]) / "config.json");
  const auto plan = Plan(places, runs);
  EXPECT_EQ(plan[0].state, RunState::kTrained);
  EXPECT_EQ(plan[2].state, RunState::kBegun);
  request.jobs = 1;
  EXPECT_THAT(Run().failed, IsEmpty());
  EXPECT_THAT(Calls(), ElementsAre("eval", "train", "eval", "analyze"));
  const std::string log = io::ReadFile(places.log(runs[2]));
  EXPECT_THAT(log, HasSubstr("hkt-s2 --resume --threads 1"));
}

TEST_F(ReproduceTest, AFailureIsToldAndTheOthersGoOn) {
  folder.Write("prepared/fail-hkt-s1", "");
  const ReproduceOutcome outcome = Run();
  EXPECT_THAT(outcome.failed, ElementsAre("hkt-s1"));
  EXPECT_TRUE(!Done(runs[0]) && Done(runs[1]) && Done(runs[2]));
  EXPECT_THAT(lines, AllOf(HasSubstr("hkt-s1: failed: training ended with exit status 3"),
                           HasSubstr("loss is not finite")));
  std::filesystem::remove(prepared() / "fail-hkt-s1");
  EXPECT_THAT(Run().failed, IsEmpty());
  EXPECT_TRUE(Done(runs[0]));
}

TEST_F(ReproduceTest, AStageThatLeavesNothingIsAFailure) {
  std::filesystem::remove(prepared() / "mha-s1/eval.json");
  EXPECT_THAT(Run().failed, ElementsAre("mha-s1"));
  EXPECT_THAT(lines, HasSubstr("mha-s1: failed: test ended with exit status 1"));
  request.settings.program = "/bin/true";
  lines.clear();
  Run();
  EXPECT_THAT(lines, HasSubstr("the test ended and left nothing"));
  request.settings.program = (folder.path() / "nowhere").string();
  lines.clear();
  Run();
  EXPECT_THAT(lines, HasSubstr("exit status 127"));
}

TEST_F(ReproduceTest, ASignalIsPassedOn) {
  folder.Write("prepared/wait", "");
  request.only = {"hkt"};
  const auto begun = [&] {
    return std::filesystem::exists(prepared() / "pids-hkt-s1") &&
           std::filesystem::exists(prepared() / "pids-hkt-s2");
  };
  watcher.stop = [&] { return begun() ? SIGTERM : 0; };
  const ReproduceOutcome outcome = Run();
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_THAT(outcome.failed, IsEmpty());
  EXPECT_THAT(lines, AllOf(HasSubstr("hkt-s1: training stopped"), HasSubstr("hkt-s2: training")));
  for (const char* id : {"hkt-s1", "hkt-s2"}) {
    std::ifstream pids(prepared() / (std::string("pids-") + id));
    int program = 0, began = 0;
    pids >> program >> began;
    ASSERT_GT(began, 0);
    EXPECT_NE(::kill(program, 0), 0) << "the process still runs";
    EXPECT_TRUE(Ends(began)) << "what the process began still runs";
  }
}

TEST_F(ReproduceTest, ATierIsDoneByOneAtATime) {
  io::CreateFolders(places.runs / "t");
  {
    const io::FolderLock lock(places.runs / "t");
    EXPECT_THAT([&] { Run(); },
                ThrowsMessage<Error>(AllOf(HasSubstr("another hkt reproduce is at work on tier t"),
                                           HasSubstr("give another --runs"))));
  }
  EXPECT_THAT(Calls(), IsEmpty());
  EXPECT_THAT(Run().failed, IsEmpty());
}

TEST_F(ReproduceTest, AResultOfOtherKindsIsAnErrorThatNamesIt) {
  Run();
  Json result = Json::parse(io::ReadFile(places.result(runs[1])));
  result["time"] = 3;
  io::WriteFileAtomically(places.result(runs[1]), io::PrettyJson(result));
  EXPECT_THAT([&] { Run(); }, ThrowsMessage<Error>(HasSubstr("mha-s1.json: 'time' must be")));
}

TEST_F(ReproduceTest, AnotherConfigurationIsAnErrorBeforeAnythingRuns) {
  Run();
  const size_t calls = Calls().size();
  folder.Write("experiments/t/mha.json",
               R"({"row": "MHA", "group": "table", "seeds": [1, 2],
                   "config": {"model": "mha", "steps": 4, "lr": 0.5}})");
  EXPECT_THAT([&] { Run(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("results/t/mha-s1.json: lr is 0.001 there, "
                                                   "0.5 in the experiment"),
                                         HasSubstr("remove these to run it again"))));
  std::filesystem::remove(places.result(runs[1]));
  EXPECT_THAT([&] { Run(); }, ThrowsMessage<Error>(HasSubstr("runs/t/mha-s1/config.json: lr is")));
  EXPECT_EQ(Calls().size(), calls);
}

TEST_F(ReproduceTest, WhatIsWrongIsSaidFirst) {
  request.jobs = 0;
  EXPECT_THROW(Run(), UsageError);
  request.jobs = 1;
  folder.Write("experiments/t/imdb.json", R"({"row": "A", "group": "table", "seeds": [1],
                                              "config": {"task": "imdb"}})");
  EXPECT_THAT([&] { Run(); }, ThrowsMessage<UsageError>(HasSubstr("--data or HKT_DATA")));
  request.settings.data = folder.path();
  EXPECT_THAT([&] { Run(); }, ThrowsMessage<UsageError>(HasSubstr("no aclImdb* in the folder")));
  EXPECT_THAT(Calls(), IsEmpty());
  folder.Write("aclImdb_v1.tar.xz", "");
  EXPECT_EQ(FindData(folder.path(), "imdb"), folder.path() / "aclImdb_v1.tar.xz");
  EXPECT_EQ(FindData(folder.path(), "listops"), "");
  EXPECT_THROW(FindData(folder.path(), "text"), UsageError);
}

TEST(TimeLeftTest, FromItsOwnStepsElseTheRowsElseTheTasks) {
  const auto planned = [](const char* name, const char* task, RunState state) {
    PlannedRun p;
    p.run.name = name;
    p.run.config.data.task = task;
    p.run.config.train.steps = 100;
    p.state = state;
    return p;
  };
  std::vector<PlannedRun> plan = {planned("a", "imdb", RunState::kDone),
                                  planned("b", "imdb", RunState::kDone),
                                  planned("a", "imdb", RunState::kNew),      // 100 steps of 2
                                  planned("b", "imdb", RunState::kBegun),    // 50 steps of 10
                                  planned("c", "imdb", RunState::kNew),      // 100 of the mean
                                  planned("d", "listops", RunState::kNew)};  // unknown
  plan[0].seconds = 200;
  plan[1].seconds = 400;
  plan[3].progress.step = 50;
  plan[3].progress.seconds = 500;
  const double mean = (2 + 4 + 10) / 3.0;
  TimeLeft left = EstimateTimeLeft(plan, 1);
  EXPECT_NEAR(left.seconds, 200 + 500 + 100 * mean, 1e-9);
  EXPECT_EQ(left.unknown, 1);
  EXPECT_NEAR(EstimateTimeLeft(plan, 2).seconds, (200 + 500 + 100 * mean) / 2, 1e-9);
  EXPECT_NEAR(EstimateTimeLeft(plan, 9).seconds, 100 * mean, 1e-9);  // no less than the longest
  plan[2].state = RunState::kTrained;
  EXPECT_NEAR(EstimateTimeLeft(plan, 1).seconds, 500 + 100 * mean, 1e-9);
  EXPECT_EQ(FormatSeconds(59.6), "1:00");
  EXPECT_EQ(FormatSeconds(3723), "1:02:03");
}

}  // namespace
}  // namespace hkt::report
