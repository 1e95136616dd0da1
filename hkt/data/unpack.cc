#include "hkt/data/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "hkt/base/error.h"

namespace hkt::data {
namespace {

constexpr size_t kBlockBytes = 1 << 16;
constexpr std::string_view kGzipMagic = "\x1f\x8b";

// The compressed bytes, from a file or from memory.
class Input {
 public:
  explicit Input(const std::string& path)
      : file_(path, std::ios::binary), size_(std::filesystem::file_size(path)) {
    Check(file_.is_open(), "cannot be opened");
  }
  explicit Input(std::string_view content) : content_(content), size_(content.size()) {}

  // Empty at the end; valid until the next call.
  std::string_view Next() {
    if (file_.is_open()) {
      file_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
      Check(!file_.bad(), "reading failed");
      const auto got = static_cast<size_t>(file_.gcount());
      used_ += got;
      return std::string_view(block_.data(), got);
    }
    const std::string_view next = content_.substr(used_, kBlockBytes);
    used_ += next.size();
    return next;
  }

  double Share() const {
    return size_ > 0 ? static_cast<double>(used_) / static_cast<double>(size_) : 1;
  }

 private:
  std::ifstream file_;
  std::string_view content_;
  std::array<char, kBlockBytes> block_;
  size_t size_, used_ = 0;
};

// By zlib itself, as libarchive's gzip filter passes over the checksum.
class GzipUnpacker : public Unpacker {
 public:
  template <class Source>
  explicit GzipUnpacker(const Source& source) : input_(source) {
    constexpr int kGzipOnly = 16;
    Check(::inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK, "out of memory");
  }
  ~GzipUnpacker() override { ::inflateEnd(&stream_); }

  size_t Read(char* buffer, size_t size) override {
    stream_.next_out = reinterpret_cast<Bytef*>(buffer);
    stream_.avail_out = static_cast<uInt>(size);
    while (stream_.avail_out == size) {
      if (stream_.avail_in == 0 && !Refill()) {
        Check(between_members_, "it ends in the middle");
        break;
      }
      if (between_members_ && !BeginMember()) break;
      const int result = ::inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {  // its checksum and length agree
        between_members_ = true;
        ::inflateReset(&stream_);
      } else {
        Check(result == Z_OK || result == Z_BUF_ERROR,
              stream_.msg != nullptr ? stream_.msg : "damaged");
      }
    }
    return size - stream_.avail_out;
  }

  double Share() const override { return input_.Share(); }

 private:
  bool Refill() {
    const std::string_view next = input_.Next();
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
    stream_.avail_in = static_cast<uInt>(next.size());
    return !next.empty();
  }

  // Another member may follow, or zeros that fill a tape's block.
  bool BeginMember() {
    while (*stream_.next_in == 0) {
      ++stream_.next_in;
      if (--stream_.avail_in == 0 && !Refill()) return false;
    }
    between_members_ = false;
    return true;
  }

  Input input_;
  z_stream stream_{};
  bool between_members_ = false;
};

// bzip2 and xz verify their checksums in their own libraries.
class OtherUnpacker : public Unpacker {
 public:
  explicit OtherUnpacker(const std::string& path) : OtherUnpacker() {
    size_ = static_cast<double>(std::filesystem::file_size(path));
    Begin(archive_read_open_filename(archive_.get(), path.c_str(), kBlockBytes));
  }
  explicit OtherUnpacker(std::string_view content) : OtherUnpacker() {
    size_ = static_cast<double>(content.size());
    Begin(archive_read_open_memory(archive_.get(), content.data(), content.size()));
  }

  size_t Read(char* buffer, size_t size) override {
    const la_ssize_t got = archive_read_data(archive_.get(), buffer, size);
    if (got < 0) Require(static_cast<int>(got));
    return static_cast<size_t>(std::max<la_ssize_t>(got, 0));
  }

  double Share() const override {
    return static_cast<double>(archive_filter_bytes(archive_.get(), -1)) / std::max(size_, 1.0);
  }

 private:
  OtherUnpacker() : archive_(archive_read_new()) {
    Check(archive_ != nullptr, "out of memory");
    // Not support_filter_all: some filters would start programs.
    Require(archive_read_support_filter_bzip2(archive_.get()));
    Require(archive_read_support_filter_xz(archive_.get()));
    Require(archive_read_support_format_raw(archive_.get()));
    Require(archive_read_support_format_empty(archive_.get()));
  }

  void Begin(int opened) {
    Require(opened);
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(archive_.get(), &entry);
    if (result != ARCHIVE_EOF) Require(result);
  }

  void Require(int result) {
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN) return;
    const char* text = archive_error_string(archive_.get());
    Fail(text != nullptr ? text : "no reason given");
  }

  struct Free {
    void operator()(archive* a) const { archive_read_free(a); }
  };
  std::unique_ptr<archive, Free> archive_;
  double size_ = 0;
};

template <class Source>
std::unique_ptr<Unpacker> Unpack(const Source& source) {
  if (Input(source).Next().starts_with(kGzipMagic)) return std::make_unique<GzipUnpacker>(source);
  return std::make_unique<OtherUnpacker>(source);
}

}  // namespace

std::unique_ptr<Unpacker> UnpackFile(const std::string& path) { return Unpack(path); }
std::unique_ptr<Unpacker> UnpackMemory(std::string_view content) { return Unpack(content); }

}  // namespace hkt::data
