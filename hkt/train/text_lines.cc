#include "hkt/train/text_lines.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "hkt/base/error.h"
#include "hkt/data/task.h"
#include "hkt/io/file.h"

namespace hkt::train {
namespace {

constexpr size_t kChunk = 1 << 16;

}  // namespace

LineReader::LineReader(const std::string& file)
    : name_(file == "-" ? "standard input" : file),
      descriptor_(file == "-" ? STDIN_FILENO : ::open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw Error(io::SystemMessage("read", name_, errno));
}

LineReader::~LineReader() {
  if (descriptor_ != STDIN_FILENO) ::close(descriptor_);
}

bool LineReader::Fill() {
  if (end_) return false;
  buffer_.erase(0, begin_);
  searched_ -= begin_;
  begin_ = 0;
  const size_t used = buffer_.size();
  buffer_.resize(used + kChunk);
  ssize_t got = 0;
  do {
    got = ::read(descriptor_, buffer_.data() + used, kChunk);
  } while (got < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(used + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) throw Error(io::SystemMessage("read", name_, error));
  end_ = got == 0;
  return !end_;
}

bool LineReader::Next(std::string* line) {
  for (;;) {
    const size_t newline = buffer_.find('\n', searched_);
    if (newline != std::string::npos) {
      line->assign(buffer_, begin_, newline - begin_);
      begin_ = searched_ = newline + 1;
      break;
    }
    searched_ = buffer_.size();
    Check(searched_ - begin_ <= kMaxLine, name_, ":", number_ + 1, ": a line of more than ",
          kMaxLine >> 20, " MiB; give one text a line");
    if (Fill()) continue;
    if (begin_ == buffer_.size()) return false;
    line->assign(buffer_, begin_);
    begin_ = searched_ = buffer_.size();
    break;
  }
  if (!line->empty() && line->back() == '\r') line->pop_back();
  ++number_;
  return true;
}

bool LineReader::Ready() {
  while (buffer_.find('\n', searched_) == std::string::npos && !end_) {
    pollfd question = {descriptor_, POLLIN, 0};
    if (::poll(&question, 1, /*timeout=*/0) <= 0) return false;  // -1: interrupted
    searched_ = buffer_.size();
    if (searched_ - begin_ > kMaxLine) return true;  // Next() will say so
    Fill();
  }
  return true;
}

std::string LineReader::Place() const { return Concat(name_, ":", number_); }

bool TextLines::Next(Sample* sample) {
  std::string line;
  if (!lines_.Next(&line)) return false;
  *sample = EncodeText(config_, line, lines_.Place());
  return true;
}

Sample EncodeText(const DataConfig& config, std::string_view text, const std::string& place) {
  Sample sample;
  if (text.find_first_not_of(" \t\r") == std::string_view::npos) return sample;
  try {
    sample.tokens = data::Encode(config, text, &sample.truncated);
  } catch (const Error& error) {
    Fail(place, ": ", error.what());
  }
  return sample;
}

}  // namespace hkt::train
