#include "cli/arguments.h"

#include <charconv>
#include <cstdint>
#include <map>
#include <type_traits>

#include "hkt/base/error.h"

namespace hkt::cli {
namespace {

template <class T>
const char* Kind() {
  if constexpr (std::is_same_v<T, double>) return "a number";
  if constexpr (std::is_same_v<T, uint64_t>) return "a whole number from 0 on";
  return "a whole number";
}

bool IsSwitch(const CLI::Option& option) { return option.get_items_expected_max() == 0; }
bool IsList(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

void AddCheck(CLI::Option& option) {
  const std::string name = option.get_name(), type = option.get_type_name();
  const auto check = [name, type](std::string& value) -> std::string {
    CheckUsage(!value.empty(), name, " is empty; ",
               name[0] == '-' ? "give it a value, or leave it out" : "name something");
    CheckUsage(value != "-" || (type != "DIR" && !type.ends_with(".safetensors")), name,
               " is '-', and this cannot go to standard output; name a ",
               type == "DIR" ? "folder" : "file");
    if (type == "INT" || type == "N") value = std::to_string(ParseNumber<int64_t>(name, value));
    if (type == "UINT") value = std::to_string(ParseNumber<uint64_t>(name, value));
    if (type == "FLOAT" || type == "X") ParseNumber<double>(name, value);
    return "";
  };
  option.transform(CLI::Validator(check, ""));
}

// Itself where it has no such command: the word is something else.
CLI::App* CommandNamed(const std::string& word, CLI::App* app) {
  for (CLI::App* command : app->get_subcommands([](const CLI::App*) { return true; }))
    if (command->get_name() == word) return command;
  return app;
}

}  // namespace

template <class T>
T ParseNumber(const std::string& flag, const std::string& text) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  CheckUsage(error != std::errc::result_out_of_range, flag, " is '", text,
             "', which is beyond what a number can hold");
  CheckUsage(error == std::errc() && at == end, flag, " is '", text, "', must be ", Kind<T>());
  return value;
}

template int64_t ParseNumber<int64_t>(const std::string&, const std::string&);
template uint64_t ParseNumber<uint64_t>(const std::string&, const std::string&);
template double ParseNumber<double>(const std::string&, const std::string&);

void CheckValues(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (!IsSwitch(*option)) AddCheck(*option);
  }
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    CheckValues(*command);
}

void CheckArguments(CLI::App& root, int argc, char** argv) {
  CLI::App* app = &root;
  std::map<const CLI::Option*, std::string> given;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") return;
    if (word.size() < 2 || word[0] != '-') {
      app = CommandNamed(word, app);
      continue;
    }
    const size_t equals = word.starts_with("--") ? word.find('=') : word.npos;
    const bool has_value = equals != word.npos;
    const std::string name = word.starts_with("--") ? word.substr(0, equals) : word.substr(0, 2);
    const std::string value = has_value ? word.substr(equals + 1) : "";
    const CLI::Option* option = app->get_option_no_throw(name);
    if (option == nullptr) continue;  // parse() says so
    const auto [before, is_first] = given.emplace(option, name);
    CheckUsage(is_first || IsList(*option), name,
               is_first || before->second == name
                   ? std::string(" is given twice; give it once")
                   : Concat(" and ", before->second, " exclude each other"));
    if (IsSwitch(*option)) {
      CheckUsage(!has_value || value == "true" || value == "false", name, " is '", value,
                 "', must be true or false; ", name, " alone means true");
    } else {
      CheckUsage(!has_value || !value.empty(), name,
                 "= has no value; give it one, or leave it out");
      if (!has_value && (word.starts_with("--") || word.size() == 2)) ++i;  // its value
    }
  }
}

}  // namespace hkt::cli
