#include "hkt/report/page.h"

#include <gtest/gtest.h>

namespace hkt::report {
namespace {

TEST(MakePage, TextOfTheDataCannotEndItsElement) {
  nlohmann::ordered_json document;
  document["token"] = "</script><script>alert(1)</script><!--";
  const std::string page = MakePage(document);
  const size_t begin = page.find("id=\"report-data\">"), data = begin + 17;
  ASSERT_NE(begin, std::string::npos);
  const size_t end = page.find("</script>", data);
  const std::string text = page.substr(data, end - data);
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_EQ(nlohmann::ordered_json::parse(text), document);
}

TEST(MakePage, TextThatIsNotUtf8IsReplaced) {
  nlohmann::ordered_json document;
  document["token"] = "a\xff";
  EXPECT_NE(MakePage(document).find("a\xef\xbf\xbd"), std::string::npos);
}

TEST(MakePage, HoldsEverythingItNeeds) {
  const std::string page = MakePage({{"runs", nullptr}});
  EXPECT_TRUE(page.starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(page.ends_with("</html>\n"));
  for (const char* placeholder :
       {"%DATA%", "%SCRIPTS%", "%STYLE%", "%SCRIPT_HASHES%", "sourceMappingURL"})
    EXPECT_EQ(page.find(placeholder), std::string::npos) << placeholder;
  const std::string policy = page.substr(0, page.find("<style>"));
  EXPECT_NE(policy.find("script-src 'sha256-"), std::string::npos);
  EXPECT_EQ(policy.find("unsafe"), std::string::npos);
}

}  // namespace
}  // namespace hkt::report
