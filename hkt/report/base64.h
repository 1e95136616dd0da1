#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hkt::report {

// RFC 4648 with padding.
std::string EncodeBase64(std::span<const uint8_t> bytes);

// Throws Error, beginning with `what`, for anything that EncodeBase64 does not write.
std::vector<uint8_t> DecodeBase64(std::string_view text, const std::string& what);

}  // namespace hkt::report
