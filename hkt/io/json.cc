#include "hkt/io/json.h"

#include <algorithm>

namespace hkt::io {
namespace {

using Json = nlohmann::ordered_json;

void Print(const Json& value, size_t indent, std::string& out) {
  const bool is_list = value.is_array();
  const bool flat = is_list && std::all_of(value.begin(), value.end(),
                                           [](const Json& item) { return item.is_primitive(); });
  if (value.is_primitive() || value.empty() || flat) {
    out += CompactJson(value);
    return;
  }
  const std::string inner(indent + 2, ' ');
  out += is_list ? "[" : "{";
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    out += inner;
    if (!is_list) out += CompactJson(Json(key)) + ": ";
    Print(item, indent + 2, out);
  }
  out += "\n" + std::string(indent, ' ') + (is_list ? "]" : "}");
}

}  // namespace

std::string CompactJson(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string PrettyJson(const Json& document) {
  std::string out;
  Print(document, 0, out);
  return out + "\n";
}

}  // namespace hkt::io
