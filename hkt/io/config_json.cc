#include "hkt/io/config_json.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/io/json.h"
#include "hkt/io/run_folder.h"

namespace hkt::io {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <class T>
Json ValueToJson(const T& value) {
  if constexpr (IsOptional<T>::value) {
    return value ? Json(*value) : Json(nullptr);
  } else {
    return Json(value);
  }
}

template <class T>
const char* Expected() {
  if constexpr (IsOptional<T>::value) return Expected<typename T::value_type>();
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_same_v<T, int64_t>) return "an integer";
  if constexpr (std::is_same_v<T, double>) return "a number";
  return "text in quotes, without NUL characters";
}

// False: the type is wrong and nothing was set.
template <class T>
bool Assign(const Json& json, T& value) {
  if constexpr (IsOptional<T>::value) {
    if (json.is_null()) {
      value.reset();
      return true;
    }
    typename T::value_type inner{};
    if (!Assign(json, inner)) return false;
    value = inner;
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) return false;
  } else if constexpr (std::is_same_v<T, int64_t>) {
    if (json.is_number_float()) {  // 1e4 is how JSON lets one write 10000
      const double number = json.template get<double>();
      if (number != std::floor(number) || std::abs(number) > 0x1p53) return false;
      value = static_cast<int64_t>(number);
      return true;
    }
    if (!json.is_number_integer()) return false;
    if (json.is_number_unsigned() &&
        json.template get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
      return false;
  } else if constexpr (std::is_same_v<T, double>) {
    if (!json.is_number()) return false;
  } else {
    // The system would take a NUL for the end of a path.
    if (!json.is_string() || json.template get_ref<const std::string&>().find('\0') != value.npos)
      return false;
  }
  if constexpr (!IsOptional<T>::value) value = json.template get<T>();
  return true;
}

// Levenshtein distance.
size_t Distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string Suggestion(const std::string& key, const std::vector<std::string>& names) {
  const auto nearest = std::min_element(
      names.begin(), names.end(),
      [&](const auto& a, const auto& b) { return Distance(key, a) < Distance(key, b); });
  if (nearest == names.end() || Distance(key, *nearest) > 1 + nearest->size() / 3) return "";
  return " (did you mean '" + *nearest + "'?)";
}

std::string Shorten(std::string text) {
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return Printable(text);
}

}  // namespace

Json ToJson(const Config& config) {
  Json document = Json::object();
  Config::Visit(config, [&](std::string_view name, const auto& value, std::string_view,
                            const Limits&) { document[std::string(name)] = ValueToJson(value); });
  return document;
}

void FromJson(const Json& document, Config& config, const std::string& what) {
  CheckUsage(document.is_object(), what,
             ": must be a JSON object of option names and values, {\"lr\": 0.001}");
  if (const auto version = document.find(kVersionKey); version != document.end()) {
    CheckUsage(version->is_string(), what, ": ", kVersionKey, " must be text in quotes");
    CheckWrittenBy(version->get<std::string>(), what);
  }
  std::vector<std::string> names;
  std::vector<std::string> problems;
  Config read = config;
  Config::Visit(read, [&](std::string_view name, auto& value, std::string_view, const Limits&) {
    names.emplace_back(name);
    const auto found = document.find(std::string(name));
    if (found != document.end() && !Assign(*found, value)) {
      problems.push_back(Concat(name, " is ", Shorten(CompactJson(*found)), ", must be ",
                                Expected<std::remove_cvref_t<decltype(value)>>()));
    }
  });
  for (const auto& [key, unused] : document.items()) {
    if (key == kVersionKey || std::find(names.begin(), names.end(), key) != names.end()) continue;
    problems.push_back(Concat("unknown key '", Shorten(key), "'", Suggestion(key, names)));
  }
  if (!problems.empty()) {
    std::string message = what + ": ";
    for (size_t i = 0; i < problems.size(); ++i) message += (i ? "; " : "") + problems[i];
    throw UsageError(message);
  }
  config = read;
}

std::vector<std::string> Differences(const Config& stored, const Config& wanted,
                                     const std::set<std::string>& names) {
  const Json stored_json = ToJson(stored), wanted_json = ToJson(wanted);
  std::vector<std::string> differences;
  for (const auto& [name, value] : stored_json.items()) {
    const Json& other = wanted_json[name];
    if (!names.contains(name) || other == value) continue;
    differences.push_back(Concat(name, " is ", CompactJson(other), ", not ", CompactJson(value)));
  }
  return differences;
}

void CopyFields(const Config& from, const std::set<std::string>& names, Config& to) {
  const Json all = ToJson(from);
  Json some = Json::object();
  for (const std::string& name : names) some[name] = all.at(name);
  FromJson(some, to);
}

}  // namespace hkt::io
