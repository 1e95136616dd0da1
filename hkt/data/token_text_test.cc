#include "hkt/data/token_text.h"

#include <gtest/gtest.h>

#include "hkt/data/listops.h"

namespace hkt::data {
namespace {

TEST(TokenText, ShowsOneTokenOfEachTask) {
  EXPECT_EQ(TokenText("listops", listops::kDigit + 7), "7");
  EXPECT_EQ(TokenText("listops", listops::kMax), "[MAX");
  EXPECT_EQ(TokenText("listops", listops::kClose), "]");
  EXPECT_EQ(TokenText("imdb", 'a' + 1), "a");
  EXPECT_EQ(TokenText("imdb", '\n' + 1), "\\x0a");
  EXPECT_EQ(TokenText("imdb", 256), "\\xff");
  EXPECT_EQ(TokenText("cifar10", 200), "200");
  EXPECT_EQ(TokenText("imdb", 0), "");
}

}  // namespace
}  // namespace hkt::data
