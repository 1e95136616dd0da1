#pragma once

// What the fuzz targets share. A target is a function of bytes that must return or throw
// hkt::Error; anything else, a sanitizer's finding or a broken promise, ends the program and is
// written down by libFuzzer as an input that does it.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "hkt/base/error.h"

namespace hkt::fuzz {

// Ends the program where what the code promises does not hold.
inline void Promise(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// Runs `body` on the bytes; hkt::Error with a message is a right answer.
template <class Body>
int Run(const uint8_t* data, size_t size, const Body& body) {
  try {
    body(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const Error& error) {
    Promise(error.what()[0] != '\0', "an error says what is wrong");
  }
  return 0;
}

}  // namespace hkt::fuzz
