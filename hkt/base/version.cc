#include "hkt/base/version.h"

#include "hkt_commit.h"

namespace hkt {

std::string_view Version() { return HKT_VERSION; }
std::string_view Commit() { return HKT_COMMIT; }

}  // namespace hkt
