#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "hkt/base/error.h"
#include "hkt/data/listops.h"
#include "hkt/data/statistics.h"
#include "hkt/io/checksum.h"

namespace hkt::data::listops {
namespace {

const std::set<Split> kAll(kAllSplits.begin(), kAllSplits.end());

// Of the text, so that the byte order of the machine does not matter.
std::string HashOf(const Dataset& dataset) {
  io::Xxh3Stream stream;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    stream.Update(Concat(dataset.labels[i], "\t", Text(dataset.sequence(i)), "\n"));
  }
  return stream.Hex();
}

TEST(ListOpsGeneratorTest, TheSameBytesOnEveryMachine) {
  // The checksums of the files that 'hkt data make --preset tiny' writes. A change here changes
  // every result that was ever reported on generated data.
  const auto splits = Generate(FindPreset("tiny"), 1, kAll);
  EXPECT_EQ(HashOf(splits.at(Split::kTrain)), "e74e26aac6f729bc710bb5d1f7574a61");
  EXPECT_EQ(HashOf(splits.at(Split::kValidation)), "717e58bd0a83738117119501ace21145");
  EXPECT_EQ(HashOf(splits.at(Split::kTest)), "148df2e5130acdd65f0f5baed8a1e559");
  EXPECT_NE(HashOf(Generate(FindPreset("tiny"), 2, {Split::kTest}).at(Split::kTest)),
            HashOf(splits.at(Split::kTest)));
}

TEST(ListOpsGeneratorTest, ASplitIsTheSameWhicheverAreAskedFor) {
  const Preset& preset = FindPreset("tiny");
  const auto all = Generate(preset, 3, kAll);
  for (const std::set<Split>& wanted :
       {std::set{Split::kTest}, std::set{Split::kValidation}, std::set{Split::kTrain},
        std::set{Split::kTrain, Split::kValidation}}) {
    const auto some = Generate(preset, 3, wanted);
    ASSERT_EQ(some.size(), wanted.size());
    for (Split split : wanted) {
      EXPECT_EQ(some.at(split).tokens, all.at(split).tokens);
      EXPECT_EQ(some.at(split).labels, all.at(split).labels);
    }
  }
}

TEST(ListOpsGeneratorTest, LabelsSizesLengthsDepthsAndDisjointness) {
  for (const char* name : {"tiny", "short"}) {
    const auto splits = Generate(FindPreset(name), 5, kAll);
    EXPECT_NO_THROW(Verify(FindPreset(name), splits)) << name;
    EXPECT_EQ(splits.at(Split::kTrain).size(), std::string(name) == "tiny" ? 20000 : 96000);
  }
}

TEST(ListOpsGeneratorTest, NoExpressionTwiceWhereTheyAreFew) {
  // [OP digit digit ] only: 400 expressions, of which 390 are asked for.
  const Preset few = {.name = "few",
                      .operators_in_4 = 2,
                      .max_depth = 2,
                      .max_args = 2,
                      .min_tokens = 4,
                      .max_tokens = 4,
                      .train = 300,
                      .validation = 45,
                      .test = 45};
  EXPECT_NO_THROW(Verify(few, Generate(few, 1, kAll)));
}

// The distribution is that of the Long Range Arena's generator: the shares of the majority class
// that were measured with the original are 11.7 % (short) and 17.3 % (lra), where 0 and 9 are
// common.
TEST(ListOpsGeneratorTest, LabelSharesFollowFromTheGenerator) {
  const Dataset train = Generate(FindPreset("short"), 1, {Split::kTrain}).at(Split::kTrain);
  const std::vector<double> shares = LabelShares(train, kClasses);
  EXPECT_NEAR(*std::max_element(shares.begin(), shares.end()), 0.117, 0.004);
  for (double share : shares) EXPECT_GT(share, 0.08);

  const auto lra = Generate(FindPreset("lra"), 1, {Split::kTest, Split::kValidation});
  double zeros = 0, nines = 0;
  for (const auto& [split, dataset] : lra) {
    zeros += LabelShares(dataset, kClasses)[0] / 2;
    nines += LabelShares(dataset, kClasses)[9] / 2;
    EXPECT_NO_THROW(Verify(FindPreset("lra"), {{split, dataset}}));
  }
  EXPECT_NEAR(zeros, 0.173, 0.02);  // three standard errors of 4000 examples
  EXPECT_NEAR(nines, 0.17, 0.02);
}

// Operators, numbers of arguments and digits are uniform inside accepted trees but for what the
// bounds on the length do; a node well below the root and above the limit is an operator with the
// preset's probability.
TEST(ListOpsGeneratorTest, OperatorsAreUniform) {
  const Dataset train = Generate(FindPreset("short"), 1, {Split::kTrain}).at(Split::kTrain);
  std::vector<double> counts(kVocabulary, 0);
  for (uint16_t token : train.tokens) counts[token] += 1;
  const double operators = counts[kMin] + counts[kMax] + counts[kMed] + counts[kSm];
  EXPECT_EQ(operators, counts[kClose]);
  for (uint16_t op = kMin; op <= kSm; ++op) EXPECT_NEAR(counts[op] / operators, 0.25, 0.002);
  double digits = 0;
  for (uint16_t id = kDigit; id < kMin; ++id) digits += counts[id];
  for (uint16_t id = kDigit; id < kMin; ++id) EXPECT_NEAR(counts[id] / digits, 0.1, 0.001);
}

}  // namespace
}  // namespace hkt::data::listops
