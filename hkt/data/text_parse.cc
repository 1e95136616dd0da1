// The two forms of a file of labelled text.

#include <optional>
#include <string>

#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/data/text.h"

namespace hkt::data::text {
namespace {

// Reads one record after the other.
class CsvReader {
 public:
  CsvReader(std::string_view content, const std::string& name) : content_(content), name_(name) {}

  // False at the end.
  bool Next(std::vector<std::string>& fields) {
    fields.clear();
    if (at_ == content_.size()) return false;
    record_line_ = line_;
    for (;;) {
      fields.push_back(Field());
      if (at_ == content_.size()) return true;
      const char end = content_[at_++];
      if (end == ',') continue;
      if (end == '\r') ++at_;  // Field() stops at a CR only where a LF follows
      ++line_;
      return true;
    }
  }

  // Where the record begins that Next() gave.
  int64_t line() const { return record_line_; }

 private:
  bool AtLineEnd() const { return content_[at_] == '\n' || content_.substr(at_, 2) == "\r\n"; }

  std::string Field() {
    if (at_ < content_.size() && content_[at_] == '"') return Quoted();
    const size_t begin = at_;
    while (at_ < content_.size() && content_[at_] != ',' && !AtLineEnd()) {
      Check(content_[at_] != '"', name_, ":", line_,
            ": a double quote inside a field that does not begin with one; put the field into "
            "quotes and double those inside");
      ++at_;
    }
    return std::string(content_.substr(begin, at_ - begin));
  }

  std::string Quoted() {
    const int64_t first_line = line_;
    std::string field;
    ++at_;
    for (;;) {
      const size_t end = content_.find('"', at_);
      Check(end != content_.npos, name_, ":", first_line,
            ": the quoted field that begins here has no end");
      for (char c : content_.substr(at_, end - at_)) line_ += c == '\n';
      field += content_.substr(at_, end - at_);
      at_ = end + 1;
      if (at_ == content_.size() || content_[at_] != '"') break;
      field += '"';
      ++at_;
    }
    Check(at_ == content_.size() || content_[at_] == ',' || AtLineEnd(), name_, ":", line_,
          ": text behind the closing quote of a field; quotes inside a field are doubled");
    return field;
  }

  std::string_view content_;
  const std::string& name_;
  size_t at_ = 0;
  int64_t line_ = 1, record_line_ = 1;
};

size_t Column(const std::vector<std::string>& header, std::string_view column,
              const std::string& name) {
  std::optional<size_t> found;
  for (size_t i = 0; i < header.size(); ++i) {
    if (header[i] != column) continue;
    Check(!found, name, ":1: the column ", column, " is there twice");
    found = i;
  }
  Check(found.has_value(), name, ":1: no column ", column,
        "; the first line of a CSV file names its columns, label and text among them");
  return *found;
}

void CheckLabel(std::string_view label, const std::string& name, int64_t line) {
  Check(!label.empty(), name, ":", line, ": the label is empty");
}

}  // namespace

void ParseLines(std::string_view content, const std::string& name, const Take& take) {
  content = WithoutByteOrderMark(content);
  int64_t number = 0;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line = content.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t tab = line.find('\t');
    Check(tab != line.npos, name, ":", number,
          ": no tab between a label and a text; expected label<TAB>text");
    CheckLabel(line.substr(0, tab), name, number);
    take(line.substr(0, tab), line.substr(tab + 1), number);
  }
}

void ParseCsv(std::string_view content, const std::string& name, const Take& take) {
  CsvReader reader(WithoutByteOrderMark(content), name);
  std::vector<std::string> header, fields;
  reader.Next(header);
  const size_t label = Column(header, "label", name), text = Column(header, "text", name);
  while (reader.Next(fields)) {
    Check(fields.size() == header.size(), name, ":", reader.line(), ": ",
          Counted(static_cast<int64_t>(fields.size()), "field"), ", the header has ",
          header.size());
    CheckLabel(fields[label], name, reader.line());
    take(fields[label], fields[text], reader.line());
  }
}

}  // namespace hkt::data::text
