#include "hkt/train/text_lines.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/data/task.h"
#include "hkt/io/file.h"

namespace hkt::train {
namespace {

constexpr size_t kChunk = 1 << 16;

bool IsTerminalOrNull(const struct stat& status, const std::string& file) {
  struct stat null;
  if (::stat("/dev/null", &null) == 0 && status.st_rdev == null.st_rdev) return true;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return false;
  const bool terminal = ::isatty(descriptor) == 1;
  ::close(descriptor);
  return terminal;
}

// What is read line by line may be a pipe, too: the shell's <(...), /dev/stdin. Not a device, which
// never ends.
void CheckStream(const std::string& file) {
  struct stat status;
  if (::stat(file.c_str(), &status) != 0) throw Error(io::SystemMessage("read", file, errno));
  if (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode)) return;
  Check(S_ISCHR(status.st_mode) && IsTerminalOrNull(status, file), file,
        ": neither a plain file nor a pipe but ", io::KindOf(file),
        "; name a file, or - for standard input");
}

}  // namespace

Stream::Stream(const std::string& file)
    : name_(file == "-" ? "standard input" : file), descriptor_(STDIN_FILENO) {
  if (file == "-") return;
  CheckStream(file);
  descriptor_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw Error(io::SystemMessage("read", name_, errno));
}

Stream::~Stream() {
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
    got = ::read(stream_.descriptor(), buffer_.data() + used, kChunk);
  } while (got < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(used + static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (got < 0) throw Error(io::SystemMessage("read", stream_.name(), error));
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
    Check(searched_ - begin_ <= kMaxLine, stream_.name(), ":", number_ + 1,
          ": a line of more than ", kMaxLine >> 20, " MiB; give one text a line");
    if (Fill()) continue;
    if (begin_ == buffer_.size()) return false;
    line->assign(buffer_, begin_);
    begin_ = searched_ = buffer_.size();
    break;
  }
  if (!line->empty() && line->back() == '\r') line->pop_back();
  if (number_ == 0) line->erase(0, line->size() - WithoutByteOrderMark(*line).size());
  ++number_;
  return true;
}

bool LineReader::Ready() {
  while (buffer_.find('\n', searched_) == std::string::npos && !end_) {
    pollfd question = {stream_.descriptor(), POLLIN, 0};
    if (::poll(&question, 1, /*timeout=*/0) <= 0) return false;  // -1: interrupted
    searched_ = buffer_.size();
    if (searched_ - begin_ > kMaxLine) return true;  // Next() will say so
    Fill();
  }
  return true;
}

std::string LineReader::Place() const { return Concat(stream_.name(), ":", number_); }

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
