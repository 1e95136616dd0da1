#pragma once

#include <iostream>
#include <nlohmann/json.hpp>

namespace hkt::cli {

// The one JSON document of a command run with --json. Text that is not UTF-8 is replaced, never a
// crash.
inline void PrintJson(const nlohmann::ordered_json& document) {
  std::cout << document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
}

}  // namespace hkt::cli
