#pragma once

#include <string_view>

namespace hkt {

// Version of the library, as in the file VERSION ("0.1.0").
std::string_view Version();

// Commit it was built from, with "-dirty" where files had changed; "unknown" outside a checkout.
std::string_view Commit();

// Compiler that it was built with ("g++ 12.2.0").
std::string_view Compiler();

}  // namespace hkt
