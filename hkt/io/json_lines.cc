#include "hkt/io/json_lines.h"

#include "hkt/base/error.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"

namespace hkt::io {
namespace {

// Calls visit(line, number) for every line that ends with a newline.
template <class Visitor>
void ForEachLine(const std::string& content, Visitor visit) {
  int64_t number = 1;
  for (size_t begin = 0;; ++number) {
    const size_t end = content.find('\n', begin);
    if (end == std::string::npos) return;
    visit(std::string_view(content).substr(begin, end - begin), number);
    begin = end + 1;
  }
}

nlohmann::ordered_json Parse(std::string_view line, const std::filesystem::path& path,
                             int64_t number) {
  try {
    return ParseJson<nlohmann::ordered_json>(line, Concat(path.string(), ", line ", number));
  } catch (const Error& error) {
    Fail(error.what(), "; remove that line");
  }
}

}  // namespace

void AppendJsonLine(const std::filesystem::path& path, const nlohmann::ordered_json& line) {
  AppendToFile(path, CompactJson(line) + "\n");
}

std::vector<nlohmann::ordered_json> ReadJsonLines(const std::filesystem::path& path) {
  std::vector<nlohmann::ordered_json> lines;
  ForEachLine(ReadFile(path), [&](std::string_view line, int64_t number) {
    lines.push_back(Parse(line, path, number));
  });
  return lines;
}

void DropLines(const std::filesystem::path& path,
               const std::function<bool(const nlohmann::ordered_json& line)>& drop) {
  if (!std::filesystem::exists(path)) return;
  const std::string content = ReadFile(path);
  std::string kept;
  ForEachLine(content, [&](std::string_view line, int64_t number) {
    if (!drop(Parse(line, path, number))) kept.append(line).append("\n");
  });
  if (kept != content) WriteFileAtomically(path, kept);
}

void DropLinesAfter(const std::filesystem::path& path, int64_t last_step) {
  DropLines(path, [last_step](const nlohmann::ordered_json& line) {
    const auto step = line.is_object() ? line.find("step") : line.end();
    return step != line.end() && step->is_number_integer() && step->get<int64_t>() > last_step;
  });
}

}  // namespace hkt::io
