#include "hkt/report/result_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hkt/io/json.h"
#include "hkt/report/collect.h"
#include "hkt/report/report.h"
#include "hkt/report/run_test_util.h"

namespace hkt::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::ThrowsMessage;

struct ResultFileTest : ::testing::Test {
  void SetUp() override {
    folder.Write("experiments/t/hkt.json",
                 R"({"row": "HKT", "group": "table", "seeds": [1, 2],
                     "config": {"levels": 2, "steps": 4}})");
    for (const ExperimentRun& run : ReadTier(places, "t")) {
      WriteFinishedRun(run, places.folder(run));
      results.push_back(Collect(run, io::RunFolder(places.folder(run)), "a processor"));
    }
  }
  void Write(const std::string& file, const Json& result) {
    folder.Write("experiments/results/" + file, io::PrettyJson(result));
  }

  TestFolder folder;
  Places places = folder.places();
  std::vector<Json> results;
};

TEST_F(ResultFileTest, ACopyUnderAnotherNameOrTierIsRefused) {
  Write("t/hkt-s1.json", results[0]);
  EXPECT_THAT(ReadResults(places.results("t")), SizeIs(1));
  Write("t/hkt-s1 (copy).json", results[0]);
  EXPECT_THAT([&] { ReadResults(places.results("t")); },
              ThrowsMessage<Error>(AllOf(HasSubstr("hkt-s1 (copy).json: it says that it is hkt-s1"),
                                         HasSubstr("t/hkt-s1.json"))));
  Write("u/hkt-s1.json", results[0]);
  EXPECT_THAT(
      [&] { ReadResults(places.results("u")); },
      ThrowsMessage<Error>(HasSubstr("u/hkt-s1.json: it says that it is hkt-s1 of tier t")));
}

TEST_F(ResultFileTest, OnlyAFolderThatIsNotThereHasNone) {
  EXPECT_THAT(ReadResults(places.results("t")), IsEmpty());
  folder.Write("experiments/results/t", "a file");
  EXPECT_THAT([&] { ReadResults(places.results("t")); },
              ThrowsMessage<Error>(HasSubstr("experiments/results/t")));
}

TEST_F(ResultFileTest, WhatARunDoesNotSayIsNoZero) {
  results[1]["time"]["cpu_seconds"] = nullptr;
  results[1]["parameters"] = nullptr;
  Write("t/hkt-s1.json", results[0]);
  Write("t/hkt-s2.json", results[1]);
  const Json experiments = ReportExperiments(places.experiments, "t");
  EXPECT_EQ(experiments["folder"], "experiments");
  const Json row = experiments["tasks"][0]["rows"][0];
  EXPECT_EQ(row["seeds"], Json({1, 2}));
  EXPECT_EQ(row["cpu_seconds"], 1.9);
  EXPECT_EQ(row["parameters"], 7);
  results[0]["time"]["cpu_seconds"] = nullptr;
  Write("t/hkt-s1.json", results[0]);
  EXPECT_TRUE(ReportExperiments(places.experiments / "", "t")["tasks"][0]["rows"][0]["cpu_seconds"]
                  .is_null());
  EXPECT_EQ(ReportExperiments(places.experiments / "", "t")["folder"], "experiments");
}

}  // namespace
}  // namespace hkt::report
