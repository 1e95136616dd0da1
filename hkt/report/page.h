#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace hkt::report {

// The page around the report's JSON: hkt/report/page/ and third_party/vega, put together when hkt
// was built.
extern const std::string_view kPageBefore, kPageAfter;

// One self-contained HTML document that shows `document` (report.h). The JSON stands in it as data,
// with every "<" escaped: text of a data set can neither end its element nor become markup.
std::string MakePage(const nlohmann::ordered_json& document);

}  // namespace hkt::report
