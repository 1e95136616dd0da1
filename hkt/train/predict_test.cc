#include "hkt/train/predict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/train/prediction_format.h"
#include "hkt/train/test_run_test_util.h"
#include "hkt/train/text_lines.h"

namespace hkt::train {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::string> Lines(const std::string& file) {
  LineReader reader(file);
  std::vector<std::string> lines;
  for (std::string line; reader.Next(&line);) lines.push_back(line);
  return lines;
}

TEST(LineReaderTest, EveryKindOfLineEnd) {
  const TemporaryFolder folder;
  const auto lines = [&](std::string_view text) {
    io::WriteFileAtomically(folder.path() / "text", text);
    return Lines(folder.path() / "text");
  };
  EXPECT_THAT(lines("a\r\nb\n\nc"), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(lines("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines("\n\r\n"), ElementsAre("", ""));
  EXPECT_THAT(lines(""), ElementsAre());
  // Lines around the size of what is read at once.
  std::string text;
  std::vector<std::string> expected;
  for (size_t size : {65535, 65536, 65537, 1, 200000, 0, 3}) {
    expected.emplace_back(size, 'x');
    text += expected.back() + "\n";
  }
  EXPECT_EQ(lines(text), expected);
  EXPECT_THAT([&] { LineReader(folder.path() / "none"); },
              ThrowsMessage<Error>(AllOf(HasSubstr("none"), HasSubstr("check the path"))));
}

TEST(LineReaderTest, AStreamButNoFolderOrDevice) {
  const TemporaryFolder folder;
  for (const std::string& path : {folder.path().string(), std::string("/dev/zero")}) {
    EXPECT_THAT(
        [&] { Lines(path); },
        ThrowsMessage<Error>(AllOf(HasSubstr(path), HasSubstr("neither a plain file nor a pipe"),
                                   HasSubstr("name a file"))));
  }
  EXPECT_THAT(Lines("/dev/null"), ElementsAre());
}

TEST(LineReaderTest, AByteOrderMarkBeforeTheFirstLineIsNoText) {
  const TemporaryFolder folder;
  const auto lines = [&](std::string_view text) {
    io::WriteFileAtomically(folder.path() / "text", text);
    return Lines(folder.path() / "text");
  };
  EXPECT_THAT(lines("\xef\xbb\xbf[MAX 1 2 ]\r\nb\n\xef\xbb\xbf"),
              ElementsAre("[MAX 1 2 ]", "b", "\xef\xbb\xbf"));
  EXPECT_THAT(lines("\xef\xbb\xbf"), ElementsAre(""));
  EXPECT_THAT(lines("\xef\xbb"), ElementsAre("\xef\xbb"));
}

TEST(LineReaderTest, ALineWithoutEndIsAnErrorAndNotAllMemory) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "zeros";
  io::WriteFileAtomically(path, "short\n");
  std::filesystem::resize_file(path, LineReader::kMaxLine * 2);  // sparse
  LineReader reader(path);
  std::string line;
  EXPECT_TRUE(reader.Next(&line));
  EXPECT_THAT([&] { reader.Next(&line); },
              ThrowsMessage<Error>(AllOf(HasSubstr("zeros:2"), HasSubstr("64 MiB"))));
}

TEST(LineReaderTest, ReadyNeverWaits) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  LineReader reader(Concat("/dev/fd/", ends[0]));
  EXPECT_FALSE(reader.Ready());
  ASSERT_EQ(::write(ends[1], "a\nb", 3), 3);
  EXPECT_TRUE(reader.Ready());
  std::string line;
  EXPECT_TRUE(reader.Next(&line));
  EXPECT_EQ(line, "a");
  EXPECT_FALSE(reader.Ready());  // half a line
  ASSERT_EQ(::write(ends[1], "c\n", 2), 2);
  EXPECT_TRUE(reader.Ready());
  EXPECT_TRUE(reader.Next(&line));
  EXPECT_EQ(line, "bc");
  ::close(ends[1]);
  EXPECT_TRUE(reader.Ready());  // the end is an answer, too
  EXPECT_FALSE(reader.Next(&line));
  ::close(ends[0]);
}

TEST(FormatTest, CsvQuotesWhatNeedsIt) {
  EXPECT_EQ(CsvField("plain text"), "plain text");
  EXPECT_EQ(CsvField("a,b"), "\"a,b\"");
  EXPECT_EQ(CsvField("say \"so\""), "\"say \"\"so\"\"\"");
  EXPECT_EQ(CsvField("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(CsvField("a\tb"), "\"a\tb\"");
  EXPECT_EQ(CsvField(" a"), "\" a\"");
  EXPECT_EQ(CsvField("höher"), "höher");
  EXPECT_EQ(FormatHead(PredictionFormat::kCsv, {"a", "b,c"}),
            "line,label,probability,truncated,p_a,\"p_b,c\"\n");
  EXPECT_EQ(FormatHead(PredictionFormat::kText, {"a"}), "");
  const Prediction p = {.number = 7,
                        .label = 1,
                        .name = "b,c",
                        .probability = 0.75,
                        .probabilities = {0.25, 0.75},
                        .truncated = true};
  EXPECT_EQ(FormatPrediction(PredictionFormat::kCsv, p, 2), "7,\"b,c\",0.75,true,0.25,0.75\n");
  EXPECT_EQ(FormatPrediction(PredictionFormat::kText, p, 2), "b,c\t0.7500\n");
  EXPECT_EQ(FormatPrediction(PredictionFormat::kJsonLines, p, 2),
            "{\"line\":7,\"label\":\"b,c\",\"probability\":0.75,\"probabilities\":[0.25,0.75],"
            "\"truncated\":true}\n");
  // Every format is one line whatever the label holds.
  Prediction odd = p;
  odd.name = std::string("a\tb\n\0c", 6);
  EXPECT_EQ(FormatPrediction(PredictionFormat::kText, odd, 2), "a\\x09b\\x0a\\x00c\t0.7500\n");
  EXPECT_EQ(ToJson(odd)["label"].get<std::string>(), odd.name);
  EXPECT_THAT(FormatPrediction(PredictionFormat::kJsonLines, odd, 2),
              HasSubstr(R"("a\tb\n\u0000c")"));
  const Prediction blank = {.number = 8, .blank = true, .name = "", .probabilities = {}};
  EXPECT_EQ(FormatPrediction(PredictionFormat::kCsv, blank, 2), "8,,,,,\n");
  EXPECT_EQ(FormatPrediction(PredictionFormat::kText, blank, 2), "\n");
  EXPECT_THAT([] { ParsePredictionFormat("xml"); },
              ThrowsMessage<UsageError>(HasSubstr("text|csv|jsonl|json")));
}

class PredictTest : public ::testing::Test {
 protected:
  void SetUp() override {
    run_.config.train.steps = 5;
    run_.folder.WriteConfig(run_.config);
    run_.Open()->Run();
  }

  std::vector<Prediction> Predict(const std::string& text, int64_t window = 2048) {
    const auto file = run_.temporary.path() / "texts";
    io::WriteFileAtomically(file, text);
    const Predictor predictor(run_.folder);
    TextLines source(predictor.config().data, file);
    std::vector<Prediction> all;
    windows_.clear();
    predictor.Predict(source, {.batch = 4, .window = window}, [&](const auto& predictions) {
      windows_.push_back(predictions.size());
      all.insert(all.end(), predictions.begin(), predictions.end());
      got_ = all;
    });
    return all;
  }

  TestRun run_;
  std::vector<size_t> windows_;
  std::vector<Prediction> got_;  // also where an Error came later
};

TEST_F(PredictTest, EveryLengthInTheOrderOfTheInputWhateverTheWindow) {
  std::string text;
  std::vector<std::string> lines;
  for (int i = 0; i < 23; ++i) {
    std::string line = "[MAX";
    for (int j = 0; j < (i * 7) % 11; ++j) line += " " + std::to_string((i * j) % 10);
    lines.push_back(line + " 3 ]");
    text += lines.back() + "\n";
  }
  const auto all = Predict(text);
  ASSERT_EQ(all.size(), lines.size());
  EXPECT_THAT(windows_, ElementsAre(23u));
  for (size_t i = 0; i < lines.size(); ++i) {
    const Prediction alone = Predict(lines[i]).at(0);
    EXPECT_EQ(all[i].number, static_cast<int64_t>(i) + 1);
    EXPECT_EQ(all[i].label, alone.label);
    EXPECT_NEAR(all[i].probability, alone.probability, 1e-5);
    EXPECT_EQ(all[i].name, std::to_string(alone.label));
    double sum = 0;
    for (const double p : all[i].probabilities) sum += p;
    EXPECT_NEAR(sum, 1, 1e-12);
  }
  const auto small = Predict(text, 5);
  EXPECT_THAT(windows_, ElementsAre(5u, 5u, 5u, 5u, 3u));
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(small[i].number, all[i].number);
    EXPECT_NEAR(small[i].probability, all[i].probability, 1e-5);
  }
  EXPECT_TRUE(Predict("").empty());
}

TEST_F(PredictTest, BlankLinesKeepTheirPlace) {
  const auto all = Predict("\n5\n \t\r\n[SM 1 2 ]\n\n");
  ASSERT_EQ(all.size(), 5u);
  EXPECT_THAT(
      (std::vector<bool>{all[0].blank, all[1].blank, all[2].blank, all[3].blank, all[4].blank}),
      ElementsAre(true, false, true, false, true));
  EXPECT_EQ(all[4].number, 5);
  EXPECT_EQ(all[1].probabilities.size(), 10u);
}

TEST_F(PredictTest, WhatCannotBeReadNamesFileAndLineBehindAllThatCould) {
  for (const int64_t window : {1, 2, 2048}) {
    EXPECT_THAT([&] { Predict("5\n\n[MAX 1 2 ]\n[MAX 1\n6\n", window); },
                ThrowsMessage<Error>(AllOf(HasSubstr("texts:4: "), HasSubstr("brackets open"))));
    EXPECT_EQ(got_.size(), 3u) << window;
  }
}

TEST_F(PredictTest, LongTextsAreCutAndSaidToBe) {
  std::string line = "[MAX";
  for (int i = 0; i < 200; ++i) line += " 1";
  const auto all = Predict(line + " ]\n5\n");
  EXPECT_TRUE(all[0].truncated);
  EXPECT_FALSE(all[1].truncated);
}

TEST(PredictorTest, ARunWithoutWeights) {
  TestRun run;
  run.folder.WriteConfig(run.config);
  EXPECT_THAT([&] { Predictor{run.folder}; }, ThrowsMessage<Error>(HasSubstr("no weights in")));
}

}  // namespace
}  // namespace hkt::train
