#include "hkt/base/text.h"

#include <gtest/gtest.h>

#include <string>

namespace hkt {
namespace {

using namespace std::string_literals;

TEST(Text, PrintableEscapesWhatATerminalWouldObeyAndNothingElse) {
  EXPECT_EQ(Printable("a\tb\nc\x1b[2J\0d\x7f"s), R"(a\x09b\x0ac\x1b[2J\x00d\x7f)");
  EXPECT_EQ(Printable("\xc2\x9b"
                      "1m"),
            R"(\xc2\x9b1m)");
  for (const std::string plain :
       {"", "höher, «mehr» \\ 'x'", "\xc2\xa0", "\xe2\x82\xac", "\xf0\x9f\x99\x82"})
    EXPECT_EQ(Printable(plain), plain);
  // Not UTF-8: stray bytes, cut, longer than need be, a surrogate, beyond the last character.
  EXPECT_EQ(Printable("a\xff\xfe"), R"(a\xff\xfe)");
  EXPECT_EQ(Printable("\xe2\x82"), R"(\xe2\x82)");
  EXPECT_EQ(Printable("\xc0\xaf"), R"(\xc0\xaf)");
  EXPECT_EQ(Printable("\xe0\x9f\xbf"), R"(\xe0\x9f\xbf)");
  EXPECT_EQ(Printable("\xed\xa0\x80"), R"(\xed\xa0\x80)");
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), R"(\xf4\x90\x80\x80)");
  EXPECT_EQ(Printable("\xe2\xc3\xa9"), "\\xe2é");
}

TEST(Text, WholeNumbersAreWrittenOut) {
  EXPECT_EQ(PlainNumber(1 << 20), "1048576");
  EXPECT_EQ(PlainNumber(-3), "-3");
  EXPECT_EQ(PlainNumber(0.999999), "0.999999");
  EXPECT_EQ(PlainNumber(1e30), "1e+30");
}

TEST(Text, CountsAgreeWithTheirNoun) {
  EXPECT_EQ(Counted(0, "example"), "0 examples");
  EXPECT_EQ(Counted(1, "example"), "1 example");
  EXPECT_EQ(Counted(2, "entry", "entries"), "2 entries");
}

TEST(Text, AShellWordIsQuotedWhereItNeedsIt) {
  EXPECT_EQ(ShellWord("runs/a-1.x"), "runs/a-1.x");
  EXPECT_EQ(ShellWord("my run's"), R"('my run'\''s')");
  EXPECT_EQ(ShellWord(""), "''");
}

TEST(Text, ByteOrderMark) {
  EXPECT_EQ(WithoutByteOrderMark("\xef\xbb\xbfx"), "x");
  EXPECT_EQ(WithoutByteOrderMark("\xef\xbbx"), "\xef\xbbx");
}

}  // namespace
}  // namespace hkt
