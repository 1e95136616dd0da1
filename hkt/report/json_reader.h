#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "hkt/base/error.h"

namespace hkt::report {

// A place in a JSON file that somebody else may have written: every access checks, and an Error
// names the file, the key and what belongs there.
class JsonReader {
 public:
  using Json = nlohmann::ordered_json;

  // The whole file. Throws Error when it cannot be read or is no JSON object. `writer` is the
  // command that writes such files, for the messages.
  static JsonReader Read(const std::filesystem::path& path, std::string writer, Json& storage);
  JsonReader(const Json& value, std::string file, std::string writer, std::string key = {})
      : value_(&value), file_(std::move(file)), writer_(std::move(writer)), key_(std::move(key)) {}

  const Json& json() const { return *value_; }
  const std::string& file() const { return file_; }

  bool Has(std::string_view key) const;  // an object that holds it, and not as null
  JsonReader operator[](std::string_view key) const;
  std::vector<JsonReader> Items() const;  // of a list

  double Number() const;
  double Share() const;   // a number from 0 to 1
  int64_t Count() const;  // a whole number from 0 on
  std::string Text() const;

  // Of an object the named keys, each a number, a text, a boolean, null or a flat list of these.
  Json Pick(std::initializer_list<const char*> keys) const;
  // Of a list of objects the same of each.
  Json PickRows(std::initializer_list<const char*> keys) const;

  [[noreturn]] void FailHere(const std::string& expected) const;

 private:
  const Json* value_;
  std::string file_, writer_, key_;
};

}  // namespace hkt::report
