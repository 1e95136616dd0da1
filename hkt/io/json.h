#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hkt/base/error.h"

namespace hkt::io {

// Parses one JSON document. Throws Error, beginning with `what` (the file), when it is not JSON,
// nests deeper than `max_depth` or says a key twice: keys that are silently overwritten hide
// mistakes.
template <class Json>
Json ParseJson(std::string_view text, const std::string& what, int max_depth = 64) {
  // The parser takes a NUL for the end, and would not look at what comes behind it.
  if (text.find('\0') != std::string_view::npos) Fail(what, ": not valid JSON: it has a NUL byte");
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto check = [&](int depth, typename Json::parse_event_t event, Json& parsed) {
    if (depth > max_depth) Fail(what, ": nested deeper than ", max_depth);
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys.back().insert(parsed.template get<std::string>()).second) {
      Fail(what, ": the key '", parsed.template get<std::string>(), "' stands there twice");
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), check);
  } catch (const nlohmann::json::exception& error) {
    std::string message =
        error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
    if (const size_t end = message.find("] "); end != std::string::npos) message.erase(0, end + 2);
    Fail(what, ": not valid JSON: ", message);
  }
}

// Indented by two, but a list of scalars on one line: readable, and a list of 25,000 predictions is
// not 25,000 lines. Text that is not UTF-8 is replaced. Ends with a newline.
std::string PrettyJson(const nlohmann::ordered_json& document);

// One line without a newline.
std::string CompactJson(const nlohmann::ordered_json& document);

}  // namespace hkt::io
