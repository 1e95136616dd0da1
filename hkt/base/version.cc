#include "hkt/base/version.h"

#include "hkt_commit.h"

namespace hkt {

std::string_view Version() { return HKT_VERSION; }
std::string_view Commit() { return HKT_COMMIT; }

std::string_view Compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "g++ " __VERSION__;
#else
  return "unknown";
#endif
}

}  // namespace hkt
