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
#include "hkt/report/statistics.h"

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
  EXPECT_EQ(test["predicted"], "EJI=");  // 0 1 2 9: 0x10 0x92
  EXPECT_EQ(test["correct"], "Bw==");
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

TEST_F(CollectTest, DamagedDerivedFilesAreToBeMadeAgain) {
  const Json report = Json::parse(io::ReadFile(there().evaluation()));
  for (const char* patch : {R"({"weights": 3})", R"({"weights": {"checksum": 3}})",
                            R"({"split": 3})", R"({"labels": "0"})", R"({"samples": 5})",
                            R"({"by_depth": {"deep": {}}})", R"({"classes": [3]})"}) {
    Json damaged = report;
    damaged.merge_patch(Json::parse(patch));
    io::WriteFileAtomically(there().evaluation(), io::PrettyJson(damaged));
    EXPECT_FALSE(IsEvaluated(there())) << patch;
  }
  io::WriteFileAtomically(there().evaluation(), io::PrettyJson(report));
  EXPECT_TRUE(IsEvaluated(there()));
  const Json analysis = Json::parse(io::ReadFile(there().analysis()));
  for (const char* patch :
       {R"({"mixture": 3})", R"({"kernel": {"levels": [3]}})", R"({"initial": {"mixture": 3}})",
        R"({"direction": {"levels": [{"level": 1e15, "layer": 0, "head": 0, "alpha": 1}]}})",
        R"({"levels_removed": {"rows": 3}})", R"({"levels_removed": {"rows": [{}]}})"}) {
    Json damaged = analysis;
    damaged.merge_patch(Json::parse(patch));
    io::WriteFileAtomically(there().analysis(), io::PrettyJson(damaged));
    EXPECT_FALSE(IsAnalyzed(there())) << patch;
  }
}

TEST_F(CollectTest, DamageOfTheRunNamesTheFile) {
  const std::string metrics = io::ReadFile(there().metrics());
  io::AppendToFile(there().metrics(), R"({"kind": "train", "step": "one", "seconds": 1})"
                                      "\n");
  EXPECT_THAT([&] { ReadProgress(there()); },
              ThrowsMessage<Error>(HasSubstr("metrics.jsonl: 'step' must be a whole number")));
  io::WriteFileAtomically(there().metrics(), "{\"kind\": \"eval\", \"step\": 1}\n" + metrics);
  EXPECT_THAT([&] { Result(); }, ThrowsMessage<Error>(HasSubstr("metrics.jsonl: not as hkt")));
  io::WriteFileAtomically(there().metrics(), metrics);
  io::WriteFileAtomically(there().config(), "[]");
  EXPECT_THAT([&] { Result(); }, ThrowsMessage<Error>(HasSubstr("config.json: not as hkt")));
}

TEST_F(CollectTest, ARunOfAnOlderHktHasNoSizes) {
  io::DropLines(there().metrics(), [](const Json& line) { return line["kind"] == "end"; });
  io::AppendJsonLine(there().metrics(), {{"kind", "end"},
                                         {"step", 4},
                                         {"seconds", 2.0},
                                         {"parameters", 7},
                                         {"peak_memory_bytes", 1}});
  EXPECT_THAT([&] { Result(); },
              ThrowsMessage<Error>(HasSubstr("its last line has no train_samples: an older hkt")));
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
      const auto width = static_cast<size_t>(bits);
      const std::vector<uint8_t> bytes = DecodeBits(
          PackLabels(labels, bits), static_cast<int64_t>(count * width), "packed labels");
      std::vector<int32_t> unpacked(count);
      for (size_t at = 0; at < count * width; ++at)
        unpacked[at / width] |= (bytes[at / 8] >> at % 8 & 1) << at % width;
      EXPECT_EQ(unpacked, labels);
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
