// hkt info: what a bug report and a figure need: versions, processor, SIMD, threads.

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <regex>
#include <string>
#include <thread>

#include "cli/output.h"
#include "cli/subcommand.h"
#include "hkt/base/version.h"

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

std::string Compiler() {
#if defined(__clang__)
  return std::string("clang ") + __clang_version__;
#elif defined(__GNUC__)
  return std::string("g++ ") + __VERSION__;
#else
  return "unknown";
#endif
}

nlohmann::ordered_json Describe() {
  return {{"version", Version()},
          {"commit", Commit()},
          {"compiler", Compiler()},
          {"torch_built_with", TORCH_VERSION},
          {"torch_loaded", LoadedTorchVersion()},
          {"processor", Processor()},
          {"simd", at::get_cpu_capability()},
          {"threads", at::get_num_threads()},
          {"hardware_threads", std::thread::hardware_concurrency()}};
}

void AddInfo(CLI::App& root) {
  CLI::App* command = root.add_subcommand("info", "versions, processor, SIMD and threads");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "one JSON document on stdout");
  command->callback([json] {
    const nlohmann::ordered_json info = Describe();
    if (*json) {
      PrintJson(info);
      return;
    }
    for (const auto& [name, value] : info.items()) {
      std::cout << name << std::string(18 - name.size(), ' ')
                << (value.is_string() ? value.get<std::string>() : value.dump()) << '\n';
    }
  });
}

const Subcommand kInfo("info", AddInfo);

}  // namespace
}  // namespace hkt::cli
