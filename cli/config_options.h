#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "hkt/base/config.h"

namespace hkt::cli {

// A visitor of the config structs (hkt/base/config.h) that gives a CLI11 command one flag a field:
// seq_len becomes
// --seq-len, a bool --x and --no-x. The help shows default and limits; the limits themselves are
// checked by Resolve. What is not a number is a UsageError that names the flag. The fields must
// outlive the app.
class OptionAdder {
 public:
  explicit OptionAdder(CLI::App& app) : app_(app) {}

  void operator()(std::string_view name, bool& value, std::string_view help, const Limits& limits);
  void operator()(std::string_view name, int64_t& value, std::string_view help,
                  const Limits& limits);
  void operator()(std::string_view name, double& value, std::string_view help,
                  const Limits& limits);
  void operator()(std::string_view name, std::string& value, std::string_view help,
                  const Limits& limits);
  void operator()(std::string_view name, std::optional<int64_t>& value, std::string_view help,
                  const Limits& limits);
  void operator()(std::string_view name, std::optional<bool>& value, std::string_view help,
                  const Limits& limits);

 private:
  CLI::App& app_;
};

// A flag for every field of a config struct: DataConfig, ModelConfig, TrainConfig or Config.
template <class AnyConfig>
void AddConfigOptions(CLI::App& app, AnyConfig& config) {
  OptionAdder adder(app);
  AnyConfig::Visit(config, adder);
}

// --config FILE. `read` gets the path and fills the config. Call it before AddConfigOptions: CLI11
// runs what options do in the order in which they were added, whatever their order on the command
// line, so that flags override the file.
void AddConfigFile(CLI::App& app, std::function<void(const std::string& path)> read);

}  // namespace hkt::cli
