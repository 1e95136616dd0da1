#pragma once

#include <filesystem>
#include <system_error>

namespace hkt::report {

// Whether there is anything of that name; false where the system does not let one look.
inline bool Exists(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

}  // namespace hkt::report
