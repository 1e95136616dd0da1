#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

namespace hkt::io {

// Appends one line; a write that fails half-way is taken back. Throws Error.
void AppendJsonLine(const std::filesystem::path& path, const nlohmann::ordered_json& line);

// All lines. A last line that was cut (the process was killed) is left out; any other damage is an
// Error with its number.
std::vector<nlohmann::ordered_json> ReadJsonLines(const std::filesystem::path& path);

// Removes the lines of which `drop` says so, and a last line that was cut. No file is fine.
void DropLines(const std::filesystem::path& path,
               const std::function<bool(const nlohmann::ordered_json& line)>& drop);

// Keeps the lines whose "step" is at most `last_step`, and drops a last line that was cut, so that
// a run that goes on from a saved state says nothing twice. No file is fine.
void DropLinesAfter(const std::filesystem::path& path, int64_t last_step);

}  // namespace hkt::io
