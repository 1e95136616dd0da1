#pragma once

#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

namespace hkt::cli {

// The one JSON document of a command run with --json. Text that is not UTF-8 is replaced, never a
// crash.
inline std::string JsonText(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

inline void PrintJson(const nlohmann::ordered_json& document) {
  std::cout << JsonText(document) << std::flush;
}

}  // namespace hkt::cli
