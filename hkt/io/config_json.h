#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "hkt/base/config.h"

namespace hkt::io {

// The version that wrote a document, under this key; FromJson checks it and otherwise passes over
// it, so that the config.json of a run can serve as a configuration file.
inline constexpr const char* kVersionKey = "hkt_version";

// Every field of Config::Visit in its order; null where an optional has no value.
nlohmann::ordered_json ToJson(const Config& config);

// Sets the fields that the document names. Unknown keys (with the nearest name), wrong types and a
// document that is not an object are one UsageError that lists all of them and begins with `what`
// (the file); then nothing is set. Values are checked by Resolve, not here.
void FromJson(const nlohmann::ordered_json& document, Config& config,
              const std::string& what = "configuration");

// The fields among `names` whose values differ, each as "name is <wanted>, not <stored>".
std::vector<std::string> Differences(const Config& stored, const Config& wanted,
                                     const std::set<std::string>& names);

// Copies the fields among `names`.
void CopyFields(const Config& from, const std::set<std::string>& names, Config& to);

}  // namespace hkt::io
