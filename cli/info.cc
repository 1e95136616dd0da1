// hkt info: what a bug report and a figure need: versions, processor, SIMD, threads.

#include <iostream>
#include <memory>
#include <string>

#include "cli/environment.h"
#include "cli/output.h"
#include "cli/subcommand.h"

namespace hkt::cli {
namespace {

void AddInfo(CLI::App& root) {
  CLI::App* command = root.add_subcommand("info", "versions, processor, SIMD and threads");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "one JSON document on stdout");
  command->callback([json] {
    const nlohmann::ordered_json info = DescribeEnvironment();
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
