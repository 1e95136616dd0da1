#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace hkt {

// A job that failed: what was given, what was expected, how to mend it, in one line. The program
// exits with 1.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Wrong usage: a flag, a configuration key or an argument. The program exits with 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

// Concat("T = ", 3) == "T = 3".
template <class... Parts>
std::string Concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

template <class... Parts>
[[noreturn]] void Fail(const Parts&... parts) {
  throw Error(Concat(parts...));
}

template <class... Parts>
void Check(bool condition, const Parts&... parts) {
  if (!condition) Fail(parts...);
}

template <class... Parts>
void CheckUsage(bool condition, const Parts&... parts) {
  if (!condition) throw UsageError(Concat(parts...));
}

}  // namespace hkt
