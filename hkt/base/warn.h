#pragma once

#include <functional>
#include <string>

namespace hkt {

// Prints "hkt: warning: <message>" on stderr the first time this process meets the message.
// Thread-safe.
void WarnOnce(const std::string& message);

// Sends warnings elsewhere (a log, a test) and forgets which were said; an empty sink restores
// stderr.
void SetWarningSink(std::function<void(const std::string&)> sink);

}  // namespace hkt
