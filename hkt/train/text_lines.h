#pragma once

#include <string>
#include <string_view>

#include "hkt/base/config.h"
#include "hkt/train/predict.h"

namespace hkt::train {

// What predictions are made of: a plain file, a pipe or a terminal under a name of its own, or
// standard input ("-"). Throws Error for a folder or a device.
class Stream {
 public:
  explicit Stream(const std::string& file);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  int descriptor_;
};

// The lines of a stream, without their line ends (LF or CR LF) and without the byte order mark
// before the first, read as they come. Throws Error where it cannot be read, and for a line of more
// than kMaxLine bytes.
class LineReader {
 public:
  static constexpr size_t kMaxLine = size_t{1} << 26;

  explicit LineReader(const std::string& file) : stream_(file) {}

  // False at the end; a last line needs no line end.
  bool Next(std::string* line);
  // A line, or the end, is there without waiting.
  bool Ready();

  // "FILE:12", of the last line.
  std::string Place() const;

 private:
  bool Fill();  // false at the end of the file

  Stream stream_;
  std::string buffer_;
  size_t begin_ = 0;     // of what is not handed out yet
  size_t searched_ = 0;  // no line end before this
  bool end_ = false;
  int64_t number_ = 0;
};

// Every line a sample of a task whose input is text. A line of nothing but blanks is a blank
// sample. What the task cannot encode is an Error that names file and line.
class TextLines : public SampleSource {
 public:
  TextLines(const DataConfig& config, const std::string& file) : config_(config), lines_(file) {}
  bool Next(Sample* sample) override;
  bool Ready() override { return lines_.Ready(); }

 private:
  DataConfig config_;
  LineReader lines_;
};

// The sample of one text; `place` is for the message.
Sample EncodeText(const DataConfig& config, std::string_view text, const std::string& place);

}  // namespace hkt::train
