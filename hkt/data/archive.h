#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace hkt::data {

// Reads a .tar, .tar.gz, .tar.bz2 or .tar.xz in one pass, to its end, without unpacking anything.
// For every plain file that `wanted` accepts, `take` gets its path and its first max_bytes bytes,
// in the archive's order. Paths come without "./" and doubled slashes. A status line
// (hkt/base/status.h) shows how far it is.
//
// Error, naming the archive and the member: no such file, no such archive, damaged or cut short, a
// path that is absolute or climbs out with "..", a link or a device.
void ReadArchive(
    const std::string& archive, size_t max_bytes,
    const std::function<bool(const std::string& path)>& wanted,
    const std::function<void(const std::string& path, const std::string& bytes)>& take);

// The same of an archive in memory; `name` is for messages.
void ReadArchive(
    std::string_view content, const std::string& name, size_t max_bytes,
    const std::function<bool(const std::string& path)>& wanted,
    const std::function<void(const std::string& path, const std::string& bytes)>& take);

}  // namespace hkt::data
