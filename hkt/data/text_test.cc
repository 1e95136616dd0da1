#include "hkt/data/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "hkt/base/error.h"
#include "hkt/data/archive_test_util.h"
#include "hkt/data/listops_folder.h"

namespace hkt::data::text {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

const std::set<Split> kAll(kAllSplits.begin(), kAllSplits.end());

using Parse = void (*)(std::string_view, const std::string&, const Take&);

// "label|text|line" of every example.
std::vector<std::string> Examples(Parse parse, std::string_view content) {
  std::vector<std::string> examples;
  parse(content, "f", [&](std::string_view label, std::string_view text, int64_t line) {
    examples.push_back(Concat(label, "|", text, "|", line));
  });
  return examples;
}

std::string ProblemOf(Parse parse, std::string_view content) {
  return data::ProblemOf([&] { Examples(parse, content); });
}

TEST(TextLinesTest, LabelTabText) {
  EXPECT_THAT(Examples(ParseLines, "a\tone\nb\ttwo\tmore\na\t\n"),
              ElementsAre("a|one|1", "b|two\tmore|2", "a||3"))
      << "the first tab divides, and a text may be empty";
  EXPECT_THAT(Examples(ParseLines,
                       "\xef\xbb\xbf"
                       "a\tx\r\nb\t\xff\xfe"),
              ElementsAre("a|x|1", "b|\xff\xfe|2"))
      << "a byte order mark, CR LF, bytes that are no UTF-8, no line end at the end";
  EXPECT_TRUE(Examples(ParseLines, "").empty());
}

TEST(TextLinesTest, MalformedLinesAreNumbered) {
  EXPECT_EQ(ProblemOf(ParseLines, "a\tx\nb y\n"),
            "f:2: no tab between a label and a text; expected label<TAB>text");
  EXPECT_EQ(ProblemOf(ParseLines, "a\tx\n\nb\ty\n"),
            "f:2: no tab between a label and a text; expected label<TAB>text");
  EXPECT_EQ(ProblemOf(ParseLines, "a\tx\n\ty\n"), "f:2: the label is empty");
}

TEST(TextCsvTest, QuotesCommasAndLineEnds) {
  EXPECT_THAT(
      Examples(ParseCsv,
               "id,text,label\r\n"
               "1,plain,a\r\n"
               "2,\"with, comma and \"\"quotes\"\"\",b\r\n"
               "3,\"two\r\nlines\n\",\"a\"\r\n"
               "4,,b"),
      ElementsAre("a|plain|2", "b|with, comma and \"quotes\"|3", "a|two\r\nlines\n|4", "b||7"))
      << "the line number is that where a record begins";
  EXPECT_THAT(Examples(ParseCsv, "label,text\na,\"\"\"\"\nb,\"\"\n"),
              ElementsAre("a|\"|2", "b||3"));
  EXPECT_THAT(Examples(ParseCsv, "label,text\na,x\ry\n"), ElementsAre("a|x\ry|2"))
      << "a lone CR is a byte like others";
}

TEST(TextCsvTest, Malformed) {
  EXPECT_THAT(ProblemOf(ParseCsv, ""), HasSubstr("f:1: no column label"));
  EXPECT_THAT(ProblemOf(ParseCsv, "a\tx\n"), HasSubstr("f:1: no column label"));
  EXPECT_THAT(ProblemOf(ParseCsv, "label,review\na,x\n"), HasSubstr("f:1: no column text"));
  EXPECT_THAT(ProblemOf(ParseCsv, "label,text,text\n"), HasSubstr("f:1: the column text is there"));
  EXPECT_THAT(ProblemOf(ParseCsv, "label,text\na,x\na,x,y\n"),
              HasSubstr("f:3: 3 fields, the header has 2"));
  EXPECT_THAT(ProblemOf(ParseCsv, "label,text\na,x\n\n"),
              HasSubstr("f:3: 1 field, the header has 2"));
  EXPECT_THAT(ProblemOf(ParseCsv, "label,text\na,\"x\ny\n"),
              HasSubstr("f:2: the quoted field that begins here has no end"));
  EXPECT_THAT(ProblemOf(ParseCsv, "label,text\na,\"x\n\"y\n"),
              HasSubstr("f:3: text behind the closing quote"));
  EXPECT_THAT(ProblemOf(ParseCsv, "label,text\na,x\"y\n"), HasSubstr("f:2: a double quote inside"));
  EXPECT_THAT(ProblemOf(ParseCsv, "label,text\n,x\n"), HasSubstr("f:2: the label is empty"));
}

class TextTest : public FolderTest {
 protected:
  std::string Write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return (folder_ / name).string();
  }

  static std::string Lines(const std::vector<std::string>& labels, int each) {
    std::string lines;
    for (int i = 0; i < each; ++i) {
      for (const std::string& label : labels) lines += Concat(label, "\t", label, " ", i, "\n");
    }
    return lines;
  }

  static std::string Problem(const std::string& path, const std::set<Split>& splits = kAll,
                             const std::vector<std::string>& classes = {}) {
    return data::ProblemOf([&] { Read(path, 1024, 1, splits, classes); });
  }

  static std::vector<std::string> Texts(const Dataset& dataset) {
    std::vector<std::string> texts;
    for (int64_t i = 0; i < dataset.size(); ++i) {
      texts.emplace_back();
      for (uint16_t id : dataset.sequence(i)) texts.back() += static_cast<char>(id - 1);
    }
    return texts;
  }
};

TEST_F(TextTest, OneFileIsDealtOut) {
  const std::string path = Write("all.tsv", Lines({"pear", "apple", "fig"}, 40));
  const Result result = Read(path, 1024, 1, kAll, {});
  EXPECT_THAT(result.classes, ElementsAre("apple", "fig", "pear"));
  std::vector<std::string> all;
  for (const auto& [split, share] :
       {std::pair{Split::kTrain, 32}, {Split::kValidation, 4}, {Split::kTest, 4}}) {
    const Dataset& dataset = result.splits.at(split);
    EXPECT_EQ(dataset.size(), 3 * share);
    for (int32_t label = 0; label < 3; ++label)
      EXPECT_EQ(std::count(dataset.labels.begin(), dataset.labels.end(), label), share);
    const std::vector<std::string> texts = Texts(dataset);
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_TRUE(texts[i].starts_with(result.classes[static_cast<size_t>(dataset.labels[i])]));
      all.push_back(texts[i]);
    }
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()) - all.begin(), 120);
  EXPECT_EQ(Read(path, 1024, 1, {Split::kTest}, {}).splits.at(Split::kTest).tokens,
            result.splits.at(Split::kTest).tokens);
  EXPECT_NE(Read(path, 1024, 2, {Split::kTest}, {}).splits.at(Split::kTest).tokens,
            result.splits.at(Split::kTest).tokens);
}

TEST_F(TextTest, FilesOfTheirOwnAreTakenAsTheyAre) {
  Write("train.csv", "label,text\na,1\nb,2\na,3\nb,4\n");
  Write("test.tsv", "b\tT1\n");
  Result result = Read(folder_.string(), 1024, 1, kAll, {});
  EXPECT_THAT(Texts(result.splits.at(Split::kTest)), ElementsAre("T1"));
  EXPECT_EQ(result.splits.at(Split::kValidation).size(), 2) << "one of each class, out of train";
  EXPECT_EQ(result.splits.at(Split::kTrain).size(), 2);
  Write("validation.txt", "a\tV1\nb\tV2\nb\tV3\n");
  result = Read(folder_.string(), 1024, 1, kAll, {});
  EXPECT_THAT(Texts(result.splits.at(Split::kValidation)), ElementsAre("V1", "V2", "V3"));
  EXPECT_THAT(Texts(result.splits.at(Split::kTrain)), ElementsAre("1", "2", "3", "4"));
  EXPECT_EQ(OwnSplits(folder_.string()), "train,validation,test");
  Write("train.tsv", "a\t1\n");
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("has both train.csv and train.tsv"));
}

TEST_F(TextTest, EndingsOfOtherSystems) {
  Write("TRAIN.CSV", "label,text\na,\"1, 2\"\nb,2\n");
  Write("Validation.Tsv", "b\tV\n");
  Write("test.TXT", "a\tT\n");
  const Result result = Read(folder_.string(), 1024, 1, kAll, {});
  EXPECT_THAT(Texts(result.splits.at(Split::kTrain)), ElementsAre("1, 2", "2"));
  EXPECT_THAT(Texts(result.splits.at(Split::kValidation)), ElementsAre("V"));
  EXPECT_THAT(Texts(result.splits.at(Split::kTest)), ElementsAre("T"));
  EXPECT_EQ(Files(folder_.string(), Split::kTrain), std::vector<fs::path>{folder_ / "TRAIN.CSV"});
  Write("train.tsv", "a\t1\n");
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("has both TRAIN.CSV and train.tsv"));
}

TEST_F(TextTest, TestIsReadOnlyWhenAskedFor) {
  Write("train.tsv", Lines({"a", "b"}, 10));
  Write("test.tsv", "no tab");
  EXPECT_EQ(Problem(folder_.string(), {Split::kTrain, Split::kValidation}), "");
  EXPECT_THAT(Problem(folder_.string(), {Split::kTest}), HasSubstr("test.tsv:1: no tab"));
}

TEST_F(TextTest, CutTextsAreCountedWhereTheyAre) {
  Write("train.tsv", "a\t12345\nb\t123\na\t1\nb\t123456\n");
  Write("validation.tsv", "a\t1234\n");
  Write("test.tsv", "a\t123456\nb\t12345\n");
  const Result result = Read(folder_.string(), 4, 1, kAll, {});
  EXPECT_EQ(result.splits.at(Split::kTrain).truncated, 2);
  EXPECT_EQ(result.splits.at(Split::kValidation).truncated, 0);
  EXPECT_EQ(result.splits.at(Split::kTest).truncated, 2);
  EXPECT_EQ(result.splits.at(Split::kTest).length(0), 4);
}

TEST_F(TextTest, TheModelsClassesStay) {
  Write("train.tsv", Lines({"a", "b"}, 5));
  Write("test.tsv", "b\tx\n");
  const std::vector<std::string> classes = {"a", "b", "c"};
  const Result result = Read(folder_.string(), 1024, 1, {Split::kTest}, classes);
  EXPECT_EQ(result.splits.at(Split::kTest).labels, std::vector<int32_t>{1});
  Write("test.tsv", "b\tx\nd\ty\n");
  EXPECT_THAT(Problem(folder_.string(), {Split::kTest}, classes),
              HasSubstr("test.tsv:2: the label 'd' is none of the model's classes (a, b, c)"));
  EXPECT_THAT(Problem(folder_.string(), {Split::kTest}),
              HasSubstr("test.tsv:2: the label 'd' is none of train's classes (a, b)"));
}

TEST_F(TextTest, NothingToLearnFrom) {
  EXPECT_THAT(Problem((folder_ / "nowhere.tsv").string()), HasSubstr("nowhere.tsv: no such file"));
  EXPECT_THAT(Problem(folder_.string()), HasSubstr("a folder without train.tsv"));
  EXPECT_THAT(Problem(Write("a.tsv", "")), HasSubstr("a.tsv: is empty"));
  EXPECT_THAT(Problem(Write("b.csv", "label,text\n")), HasSubstr("b.csv: has no example"));
  EXPECT_THAT(Problem(Write("c.tsv", Lines({"only"}, 5))),
              HasSubstr("every example has the label 'only'"));
  EXPECT_THAT(Problem(Write("d.tsv", Lines({"a", "b"}, 5) + "rare\tx\nrare\ty\n")),
              HasSubstr("class 'rare' has 2 examples, at least 3 are needed"));
  EXPECT_THAT(Problem(Write("u.csv", std::string("\xff\xfel\0a\0", 6))),
              HasSubstr("save it as UTF-8"));
  EXPECT_THAT(Problem(Write("d.tsv", std::string("a\tx\nb\0\tx\n", 9))),
              HasSubstr(R"(class 'a' has 1 example, at least 3)"));
  EXPECT_THAT(Problem(Write("n.tsv", std::string("b\0\tx\n", 5))),
              HasSubstr(R"(every example has the label 'b\x00'; at least two)"));
  EXPECT_THAT(Problem(Write("e.tsv", "a\tx\n\xff\ty\n")),
              HasSubstr("e.tsv:2: the label is not UTF-8"));
  std::string many;
  for (int i = 0; i <= kMaxClasses; ++i) many += Concat(i, "\tx\n");
  EXPECT_THAT(Problem(Write("f.tsv", many)), HasSubstr("f.tsv:1001: '1000' is the 1001th"));
}

// What `hkt data make` writes is labelled text as well.
TEST_F(TextTest, AFolderOfListOps) {
  fs::remove_all(folder_);
  listops::WriteFolder(folder_.string(), listops::FindPreset("tiny"), 1);
  const Result result = Read(folder_.string(), 1024, 1, {Split::kValidation}, {});
  EXPECT_EQ(result.classes.size(), 10u);
  EXPECT_EQ(result.splits.at(Split::kValidation).size(), 1000);
}

}  // namespace
}  // namespace hkt::data::text
