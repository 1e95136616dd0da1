#pragma once

#include <nlohmann/json.hpp>

namespace hkt::cli {

// What a bug report and a figure need: versions, commit, processor, SIMD, threads. Field by field
// what `hkt info` prints.
nlohmann::ordered_json DescribeEnvironment();

}  // namespace hkt::cli
