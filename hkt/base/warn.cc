#include "hkt/base/warn.h"

#include <iostream>
#include <mutex>
#include <set>
#include <utility>

#include "hkt/base/text.h"

namespace hkt {
namespace {

struct Warnings {
  std::mutex mutex;
  std::set<std::string> said;
  std::function<void(const std::string&)> sink;
};

Warnings& State() {
  static Warnings* warnings =
      new Warnings;  // never destroyed: threads may warn while the process ends
  return *warnings;
}

}  // namespace

void WarnOnce(const std::string& message) {
  Warnings& state = State();
  std::lock_guard lock(state.mutex);
  if (!state.said.insert(message).second) return;
  if (state.sink) {
    state.sink(message);
  } else {
    std::cerr << "hkt: warning: " << Printable(message) << std::endl;
  }
}

void SetWarningSink(std::function<void(const std::string&)> sink) {
  Warnings& state = State();
  std::lock_guard lock(state.mutex);
  state.said.clear();
  state.sink = std::move(sink);
}

}  // namespace hkt
