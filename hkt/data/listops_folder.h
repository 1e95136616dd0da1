#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "hkt/data/listops.h"

// Generated ListOps as files: train.tsv, validation.tsv, test.tsv with a line
// `label<TAB>expression` an example, and manifest.json with preset, seed, sizes, label shares and a
// checksum of every file.

namespace hkt::data::listops {

inline constexpr int64_t kManifestVersion = 1;

// Generates the preset into a new folder: it appears under its name when it is whole, or not at
// all. Returns the manifest. Error where `folder` exists and holds something.
nlohmann::ordered_json WriteFolder(const std::string& folder, const Preset& preset, uint64_t seed);

// Reads these splits. Error, naming the file: no manifest, a newer one, one of another preset or
// seed, a malformed line (with its number), a file that is not the one that was written.
std::map<Split, Dataset> ReadFolder(const std::string& folder, const Preset& preset, uint64_t seed,
                                    int64_t seq_len, const std::set<Split>& splits);

// The lines of one file; `name` is for errors.
Dataset ParseLines(std::string_view content, const std::string& name, int64_t seq_len);

}  // namespace hkt::data::listops
