#include "hkt/report/collect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"
#include "hkt/io/json_lines.h"
#include "hkt/io/safetensors.h"
#include "hkt/report/pack.h"
#include "hkt/report/run_test_util.h"

namespace hkt::report {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct CollectTest : ::testing::Test {
  void SetUp() override {
    folder.Write("experiments/t/x.json",
                 R"({"row": "HKT", "group": "table", "seeds": [2],
                     "config": {"levels": 2, "steps": 4}})");
    run = ReadTier(folder.places(), "t").at(0);
    WriteFinishedRun(run, places.folder(run));
  }
  Json Result() const { return Collect(run, there(), "a processor"); }
  io::RunFolder there() const { return io::RunFolder(places.folder(run)); }

  TestFolder folder;
  Places places = folder.places();
  ExperimentRun run;
};

TEST_F(CollectTest, EverythingThatTheTableNeeds) {
  const Json result = Result();
  EXPECT_EQ(result["format"], 1);
  EXPECT_EQ(result["row"], "HKT");
  EXPECT_EQ(result["seed"], 2);
  EXPECT_EQ(result["commit"], "abc");
  EXPECT_EQ(result["processor"], "a processor");
  EXPECT_EQ(result["config"]["levels"], 2);
  for (const char* key : {"data", "threads", "hkt_version"})
    EXPECT_FALSE(result["config"].contains(key)) << key;
  EXPECT_EQ(result["parameters"], 7);
  EXPECT_EQ(result["sizes"], Json::parse(R"({"train": 100, "validation": 10, "test": 4})"));
  EXPECT_EQ(result["curve"]["train"], Json::parse("[[1, 2.1235], [3, null]]"));
  EXPECT_EQ(result["curve"]["validation"],
            Json::parse("[[2, 0.75, 0.5, 1.0, 0.9], [4, 0.5, 0.7, 2.0, 1.9]]"));
  EXPECT_EQ(result["best"]["step"], 2);
  EXPECT_EQ(result["last"]["step"], 4);
  const Json& test = result["test"];
  EXPECT_EQ(test["accuracy"], 0.75);
  EXPECT_EQ(test["bits"], 4);
  EXPECT_EQ(UnpackLabels(test["predicted"].get<std::string>(), 4, 4),
            (std::vector<int32_t>{0, 1, 2, 9}));
  EXPECT_EQ(UnpackLabels(test["correct"].get<std::string>(), 1, 4),
            (std::vector<int32_t>{1, 1, 1, 0}));
  EXPECT_EQ(test["recall"][3], nullptr);
  EXPECT_EQ(result["by_depth"], Json::parse(R"([{"depth": 2, "examples": 3, "correct": 2},
                                                {"depth": 11, "examples": 1, "correct": 1}])"));
  EXPECT_EQ(result["by_operator"],
            Json::parse(R"([{"operator": "MAX", "examples": 4, "correct": 3}])"));
  EXPECT_EQ(result["time"],
            Json::parse(R"({"wall_seconds": 2.0, "cpu_seconds": 1.9, "peak_memory_bytes": 4096})"));
}

TEST_F(CollectTest, SummaryOfTheAnalysis) {
  const Json summary = Result()["analysis"];
  ASSERT_EQ(summary["heads"].size(), 2u);
  EXPECT_EQ(summary["heads"][1]["head"], 1);
  EXPECT_EQ(summary["heads"][1]["lambda"], Json::parse("[0.7, 0.5]"));
  EXPECT_EQ(summary["heads"][0]["beta"], Json::parse("[null, null]"));
  EXPECT_EQ(summary["levels"]["antisymmetric_share"], Json::parse("[0.35, 0.45]"));
  EXPECT_EQ(summary["levels_initial"]["antisymmetric_share"], Json::parse("[0.25, 0.35]"));
  EXPECT_EQ(summary["levels"]["antisymmetric_z"], Json::parse("[null, null]"));
  EXPECT_EQ(summary["levels"]["score_kurtosis"], Json::parse("[3.05, 5.05]"));  // fused: not in it
  EXPECT_EQ(summary["levels_removed"][0]["change"], -0.25);
}

TEST_F(CollectTest, OnlyWhatIsOfTheseWeightsCounts) {
  EXPECT_TRUE(IsEvaluated(there()));
  EXPECT_TRUE(IsAnalyzed(there()));
  const float other = 2;
  io::WriteSafetensors(
      there().model(),
      {{"w",
        {.dtype = io::Dtype::kF32, .shape = {1}, .data = std::as_bytes(std::span(&other, 1))}}},
      {});
  EXPECT_FALSE(IsEvaluated(there()));
  EXPECT_FALSE(IsAnalyzed(there()));
  EXPECT_THAT([&] { Result(); }, ThrowsMessage<Error>(HasSubstr("evaluate with 'hkt eval ")));
}

TEST_F(CollectTest, TheValidationSplitIsNoTest) {
  Json report = Json::parse(io::ReadFile(there().evaluation()));
  report["split"] = "validation";
  io::WriteFileAtomically(there().evaluation(), io::PrettyJson(report));
  EXPECT_FALSE(IsEvaluated(there()));
  io::WriteFileAtomically(there().evaluation(), "{ cut");
  EXPECT_FALSE(IsEvaluated(there()));
}

TEST_F(CollectTest, AnUnfinishedRunIsNoResult) {
  EXPECT_TRUE(ReadProgress(there()).finished);
  io::DropLines(there().metrics(), [](const Json& line) { return line["kind"] == "end"; });
  const RunProgress progress = ReadProgress(there());
  EXPECT_FALSE(progress.finished);
  EXPECT_EQ(progress.step, 4);
  EXPECT_EQ(progress.accuracy, 0.5);
  EXPECT_THAT([&] { Result(); }, ThrowsMessage<Error>(HasSubstr("hkt train --resume --out ")));
}

TEST(PackTest, LabelsComeBack) {
  for (const int bits : {1, 3, 4, 11}) {
    for (const size_t count : {0u, 1u, 2u, 3u, 7u, 8u, 9u, 100u}) {
      std::vector<int32_t> labels(count);
      for (size_t i = 0; i < count; ++i)
        labels[i] = static_cast<int32_t>(i * 2654435761u >> 7) & ((1 << bits) - 1);
      const std::string text = PackLabels(labels, bits);
      EXPECT_EQ(UnpackLabels(text, bits, static_cast<int64_t>(count)), labels);
      EXPECT_THROW(UnpackLabels(text, bits, static_cast<int64_t>(count) + 8), Error);
    }
  }
  EXPECT_EQ(PackLabels({1, 0, 0, 0, 0, 0, 1, 0}, 1), "QQ==");  // 0x41: little end first
  EXPECT_EQ(PackLabels({1, 2}, 4), "IQ==");                    // 0x21
  EXPECT_THROW(PackLabels({2}, 1), Error);
  EXPECT_THROW(PackLabels({-1}, 1), Error);
  EXPECT_EQ(BitsFor(1), 1);
  EXPECT_EQ(BitsFor(2), 1);
  EXPECT_EQ(BitsFor(3), 2);
  EXPECT_EQ(BitsFor(10), 4);
  EXPECT_EQ(BitsFor(16), 4);
  EXPECT_EQ(BitsFor(17), 5);
}

}  // namespace
}  // namespace hkt::report
