#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "hkt/base/text.h"

// Figures of a JSON document as text, and tables of them on stdout.

namespace hkt::cli {

using Json = nlohmann::ordered_json;

inline std::string Number(const Json& value, const char* format = "%.3f") {
  if (value.is_null() || !std::isfinite(value.get<double>())) return "-";
  char text[48];
  std::snprintf(text, sizeof(text), format, value.get<double>());
  return text;
}

inline std::string Percent(const Json& share, const char* format = "%.1f %%") {
  return share.is_null() ? "-" : Number(100 * share.get<double>(), format);
}

inline std::string Count(const Json& value) { return std::to_string(value.get<int64_t>()); }
inline std::string Big(const Json& value) {  // multiply-adds
  return Number(value.get<double>() / 1e6, "%.2f M");
}

// Right-aligned columns under their names.
class Table {
 public:
  explicit Table(std::vector<std::string> names) { rows_.push_back(std::move(names)); }
  void Add(std::vector<std::string> row) {
    for (std::string& cell : row) cell = Printable(cell);
    rows_.push_back(std::move(row));
  }
  void Print() const {
    std::vector<size_t> width(rows_.front().size(), 0);
    for (const auto& row : rows_)
      for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i)
        std::printf("%s%*s", i == 0 ? "  " : "  ", static_cast<int>(width[i]), row[i].c_str());
      std::printf("\n");
    }
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

inline void Title(const std::string& title, const char* text) {
  std::printf("\n%s\n%s\n", title.c_str(), text);
}

// "0.1" for layer 0, head 1.
inline std::string Head(const Json& row) { return Count(row["layer"]) + "." + Count(row["head"]); }

}  // namespace hkt::cli
