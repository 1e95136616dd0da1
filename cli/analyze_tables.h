#pragma once

#include <nlohmann/json.hpp>

namespace hkt::cli {

// analysis.json as tables on stdout, each with a line that says how to read it.
void PrintAnalysis(const nlohmann::ordered_json& document);

}  // namespace hkt::cli
