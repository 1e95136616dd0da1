#include "bench/peer.h"

#include <dlfcn.h>

#include <filesystem>

#include "hkt/base/error.h"

namespace hkt::bench {

Peer LoadPeer(const std::string& file) {
  // A path, in which dlopen would wait for a pipe's other end; anything else is a name to look for.
  std::error_code ignored;
  CheckUsage(file.find('/') == file.npos || !std::filesystem::exists(file, ignored) ||
                 std::filesystem::is_regular_file(file, ignored),
             "--peer ", file, " cannot be loaded: not a plain file");
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  CheckUsage(library != nullptr, "--peer ", file, " cannot be loaded: ", dlerror());
  const Peer peer = {reinterpret_cast<Peer::Forward>(dlsym(library, "hkt_fwd")),
                     reinterpret_cast<Peer::Backward>(dlsym(library, "hkt_bwd"))};
  CheckUsage(peer.forward != nullptr && peer.backward != nullptr, "--peer ", file,
             " lacks hkt_fwd or hkt_bwd; see bench/peer.h for their arguments");
  return peer;
}

}  // namespace hkt::bench
