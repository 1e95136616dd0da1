#include "hkt/io/json_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

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
  return ParseJson<nlohmann::ordered_json>(line, Concat(path.string(), ", line ", number));
}

}  // namespace

void AppendJsonLine(const std::filesystem::path& path, const nlohmann::ordered_json& line) {
  const std::string text = CompactJson(line) + "\n";
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (file < 0) throw Error(SystemMessage("write", path, errno));
  struct stat before;
  const bool known = ::fstat(file, &before) == 0;
  ssize_t written = 0;
  do {
    written = ::write(file, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  const int error = written < 0 ? errno : ENOSPC;  // a short write: the disk is full
  const bool complete = written == static_cast<ssize_t>(text.size());
  if (!complete && written > 0 && known && ::ftruncate(file, before.st_size) != 0) {
    // Nothing more can be done; readers leave a cut last line out.
  }
  ::close(file);
  if (!complete) throw Error(SystemMessage("write", path, error));
}

std::vector<nlohmann::ordered_json> ReadJsonLines(const std::filesystem::path& path) {
  std::vector<nlohmann::ordered_json> lines;
  ForEachLine(ReadFile(path), [&](std::string_view line, int64_t number) {
    lines.push_back(Parse(line, path, number));
  });
  return lines;
}

void DropLinesAfter(const std::filesystem::path& path, int64_t last_step) {
  if (!std::filesystem::exists(path)) return;
  const std::string content = ReadFile(path);
  std::string kept;
  ForEachLine(content, [&](std::string_view line, int64_t number) {
    const nlohmann::ordered_json parsed = Parse(line, path, number);
    const auto step = parsed.is_object() ? parsed.find("step") : parsed.end();
    const bool drop =
        step != parsed.end() && step->is_number_integer() && step->get<int64_t>() > last_step;
    if (!drop) kept.append(line).append("\n");
  });
  if (kept != content) WriteFileAtomically(path, kept);
}

}  // namespace hkt::io
