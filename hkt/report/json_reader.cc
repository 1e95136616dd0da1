#include "hkt/report/json_reader.h"

#include <algorithm>
#include <cmath>

#include "hkt/io/file.h"
#include "hkt/io/json.h"

namespace hkt::report {
namespace {

bool Flat(const JsonReader::Json& value) {
  return value.is_primitive() ||
         (value.is_array() && std::all_of(value.begin(), value.end(),
                                          [](const auto& item) { return item.is_primitive(); }));
}

}  // namespace

JsonReader JsonReader::Read(const std::filesystem::path& path, std::string writer, Json& storage) {
  storage = io::ParseJson<Json>(io::ReadFile(path), path.string());
  JsonReader reader(storage, path.string(), std::move(writer));
  if (!storage.is_object()) reader.FailHere("an object");
  return reader;
}

void JsonReader::FailHere(const std::string& expected) const {
  Fail(file_, ": ", key_.empty() ? "the document" : "'" + key_ + "'", " must be ", expected,
       "; this is not a file that '", writer_, "' writes, or it is damaged: write it again");
}

bool JsonReader::Has(std::string_view key) const {
  if (!value_->is_object()) return false;
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonReader JsonReader::operator[](std::string_view key) const {
  const std::string name = key_.empty() ? std::string(key) : Concat(key_, ".", key);
  if (!value_->is_object()) FailHere("an object");
  const auto found = value_->find(key);
  if (found == value_->end()) JsonReader(*value_, file_, writer_, name).FailHere("there");
  return {*found, file_, writer_, name};
}

std::vector<JsonReader> JsonReader::Items() const {
  if (!value_->is_array()) FailHere("a list");
  std::vector<JsonReader> items;
  items.reserve(value_->size());
  for (size_t i = 0; i < value_->size(); ++i)
    items.emplace_back((*value_)[i], file_, writer_, Concat(key_, "[", i, "]"));
  return items;
}

double JsonReader::Number() const {
  if (!value_->is_number() || !std::isfinite(value_->get<double>())) FailHere("a number");
  return value_->get<double>();
}

double JsonReader::Share() const {
  if (!value_->is_number() || !(value_->get<double>() >= 0 && value_->get<double>() <= 1))
    FailHere("a share from 0 to 1");
  return value_->get<double>();
}

int64_t JsonReader::Count() const {
  constexpr int64_t kMost = int64_t{1} << 53;  // what JavaScript holds exactly
  const bool good =
      value_->is_number_integer() && value_->get<int64_t>() >= 0 && value_->get<int64_t>() <= kMost;
  if (!good) FailHere("a whole number from 0 on");
  return value_->get<int64_t>();
}

std::string JsonReader::Text() const {
  if (!value_->is_string()) FailHere("text");
  return value_->get<std::string>();
}

JsonReader::Json JsonReader::Pick(std::initializer_list<const char*> keys) const {
  Json picked = Json::object();
  for (const char* key : keys) {
    const JsonReader field = (*this)[key];
    if (!Flat(field.json())) field.FailHere("a number, text, or a list of these");
    picked[key] = field.json();
  }
  return picked;
}

JsonReader::Json JsonReader::PickRows(std::initializer_list<const char*> keys) const {
  Json rows = Json::array();
  for (const JsonReader& item : Items()) rows.push_back(item.Pick(keys));
  return rows;
}

}  // namespace hkt::report
