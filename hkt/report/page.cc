#include "hkt/report/page.h"

#include "hkt/io/json.h"

namespace hkt::report {

std::string MakePage(const nlohmann::ordered_json& document) {
  const std::string json = io::CompactJson(document);
  std::string page;
  page.reserve(kPageBefore.size() + json.size() + kPageAfter.size() + json.size() / 16);
  page += kPageBefore;
  for (const char c : json) {
    if (c == '<') {
      page += "\\u003c";
    } else {
      page += c;
    }
  }
  page += kPageAfter;
  return page;
}

}  // namespace hkt::report
