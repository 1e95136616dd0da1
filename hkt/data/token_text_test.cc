#include "hkt/data/token_text.h"

#include <gtest/gtest.h>

#include <vector>

#include "hkt/data/listops.h"

namespace hkt::data {
namespace {

std::string One(std::string_view task, int id) {
  return StepText(task, std::vector<uint16_t>{static_cast<uint16_t>(id)});
}

TEST(StepText, ShowsOneStepOfEachTask) {
  EXPECT_EQ(One("listops", listops::kDigit + 7), "7");
  EXPECT_EQ(One("listops", listops::kMax), "[MAX");
  EXPECT_EQ(One("listops", listops::kClose), "]");
  EXPECT_EQ(One("imdb", 'a' + 1), "a");
  EXPECT_EQ(One("text", '\n' + 1), "\\x0a");
  EXPECT_EQ(One("imdb", 256), "\\xff");
  EXPECT_EQ(One("cifar10", 1), "0");
  EXPECT_EQ(One("cifar10", 256), "255");
  EXPECT_EQ(One("imdb", 0), "");
  EXPECT_EQ(StepText("cifar10", std::vector<uint16_t>{0, 12, 255}), "0,12,255");
}

}  // namespace
}  // namespace hkt::data
