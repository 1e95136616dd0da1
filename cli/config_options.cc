#include "cli/config_options.h"

#include <cmath>

#include "cli/arguments.h"
#include "hkt/base/error.h"
#include "hkt/base/text.h"

namespace hkt::cli {
namespace {

std::string Flag(std::string_view name) {
  std::string flag = "--";
  for (char c : name) flag += c == '_' ? '-' : c;
  return flag;
}

// What the flag is, then what it may hold.
std::string Help(std::string_view help, const Limits& limits) {
  std::string text(help);
  if (!limits.choices.empty()) {
    text += Concat(" [", limits.choices, "]");
  } else if (std::isfinite(limits.min) && std::isfinite(limits.max)) {
    text += Concat(" [", PlainNumber(limits.min), " ... ", PlainNumber(limits.max), "]");
  } else if (std::isfinite(limits.min)) {
    text += Concat(limits.above_min ? " [above " : " [at least ", PlainNumber(limits.min), "]");
  }
  return text;
}

template <class T, class Target>
CLI::Option* AddNumber(CLI::App& app, std::string_view name, Target& value, std::string_view help,
                       const Limits& limits, const char* type) {
  const std::string flag = Flag(name);
  return app
      .add_option_function<std::string>(
          flag, [&value, flag](const std::string& text) { value = ParseNumber<T>(flag, text); },
          Help(help, limits))
      ->type_name(type);
}

template <class Target>
void AddSwitch(CLI::App& app, std::string_view name, Target& value, std::string_view help,
               const Limits& limits) {
  const std::string flag = Flag(name);
  app.add_flag_function(
      flag + ",!--no-" + flag.substr(2), [&value](int64_t count) { value = count > 0; },
      Help(help, limits));
}

}  // namespace

void OptionAdder::operator()(std::string_view name, bool& value, std::string_view help,
                             const Limits& limits) {
  AddSwitch(app_, name, value, help, limits);
}

void OptionAdder::operator()(std::string_view name, std::optional<bool>& value,
                             std::string_view help, const Limits& limits) {
  AddSwitch(app_, name, value, help, limits);
}

void OptionAdder::operator()(std::string_view name, int64_t& value, std::string_view help,
                             const Limits& limits) {
  AddNumber<int64_t>(app_, name, value, help, limits, "N")->default_str(std::to_string(value));
}

void OptionAdder::operator()(std::string_view name, std::optional<int64_t>& value,
                             std::string_view help, const Limits& limits) {
  AddNumber<int64_t>(app_, name, value, help, limits, "N");
}

void OptionAdder::operator()(std::string_view name, double& value, std::string_view help,
                             const Limits& limits) {
  AddNumber<double>(app_, name, value, help, limits, "X")->default_str(Concat(value));
}

void OptionAdder::operator()(std::string_view name, std::string& value, std::string_view help,
                             const Limits& limits) {
  CLI::Option* option = app_.add_option(Flag(name), value, Help(help, limits));
  option->type_name(limits.choices.empty() ? "TEXT" : "NAME");
  if (!value.empty()) option->default_str(value);
}

void AddConfigFile(CLI::App& app, std::function<void(const std::string& path)> read) {
  app.add_option_function<std::string>(
         "--config", std::move(read),
         "JSON file with the flags' names in snake_case; flags override it")
      ->type_name("FILE");
}

}  // namespace hkt::cli
