// What `hkt info` prints and every benchmark report begins with.

#include "cli/environment.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <thread>

#include "hkt/base/version.h"
#include "hkt/kernels/targets.h"
#include "hkt/ops/path.h"

namespace hkt::cli {
namespace {

// The version of the PyTorch that is loaded: it stands in version.py beside the folder of its
// libraries.
std::string LoadedTorchVersion() {
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&at::get_cpu_capability), &library) == 0 ||
      library.dli_fname == nullptr)
    return "unknown";
  std::ifstream file(std::filesystem::path(library.dli_fname).parent_path().parent_path() /
                     "version.py");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::smatch match;
  return std::regex_search(text, match, std::regex("__version__\\s*=\\s*['\"]([^'\"]+)"))
             ? match[1].str()
             : "unknown";
}

std::string Processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

nlohmann::ordered_json DescribeEnvironment() {
  return {{"version", Version()},
          {"commit", Commit()},
          {"compiler", Compiler()},
          {"torch_built_with", TORCH_VERSION},
          {"torch_loaded", LoadedTorchVersion()},
          {"processor", Processor()},
          {"simd", at::get_cpu_capability()},
          {"target", kernels::ChosenTarget()},
          {"fused_kernels", ops::FusedKernels()},
          {"targets_usable", kernels::UsableTargets()},
          {"targets_compiled", kernels::CompiledTargets()},
          {"threads", at::get_num_threads()},
          {"hardware_threads", std::thread::hardware_concurrency()}};
}

}  // namespace hkt::cli
