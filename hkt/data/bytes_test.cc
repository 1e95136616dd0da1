#include "hkt/data/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace hkt::data {
namespace {

using testing::ElementsAre;

TEST(BytesTest, PlusOne) {
  bool truncated = true;
  // <br />, an accent in UTF-8, CR LF, the bytes 0 and 255: nothing is cleaned away.
  EXPECT_THAT(EncodeBytes(std::string("<br />\xc3\xa9\r\n\0\xff", 12), 1024, &truncated),
              ElementsAre(61, 99, 115, 33, 48, 63, 196, 170, 14, 11, 1, 256));
  EXPECT_FALSE(truncated);
  EXPECT_THAT(EncodeBytes("abc", 3, &truncated), ElementsAre(98, 99, 100));
  EXPECT_FALSE(truncated) << "exactly seq_len";
  EXPECT_THAT(EncodeBytes("abc", 2, &truncated), ElementsAre(98, 99));
  EXPECT_TRUE(truncated);
  EXPECT_TRUE(EncodeBytes("", 2, nullptr).empty());
}

}  // namespace
}  // namespace hkt::data
