#include "hkt/base/environment.h"

#include <cstdlib>
#include <string_view>

#include "hkt/base/error.h"

namespace hkt {

bool EnvironmentSwitch(const char* name, bool standard) {
  const char* value = std::getenv(name);
  const std::string_view text = value != nullptr ? value : "";
  if (text.empty()) return standard;
  Check(text == "0" || text == "1", "the environment variable ", name, " is '", text,
        "'; it must be 1 (on) or 0 (off)");
  return text == "1";
}

}  // namespace hkt
