#include "hkt/data/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>

#include "hkt/base/error.h"
#include "hkt/base/status.h"
#include "hkt/base/warn.h"
#include "hkt/data/unpack.h"
#include "hkt/io/file.h"

namespace hkt::data {
namespace {

constexpr size_t kBlockBytes = 1 << 16, kSmallBytes = 1 << 12;

struct Free {
  void operator()(archive* a) const { archive_read_free(a); }
};

// A tar archive whose bytes come from an Unpacker.
class Reader {
 public:
  Reader(const std::string& name, std::unique_ptr<Unpacker> unpacker)
      : name_(name),
        unpacker_(std::move(unpacker)),
        status_("reading " + std::filesystem::path(name).filename().string()),
        archive_(archive_read_new()) {
    Check(archive_ != nullptr, name_, ": out of memory");
    Require(archive_read_support_format_tar(archive_.get()));
    Require(archive_read_open(archive_.get(), this, nullptr, &Reader::Block, nullptr));
  }

  // The next member, or null at the end, up to which everything was read then and its checksums
  // verified.
  archive_entry* Next() {
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(archive_.get(), &entry);
    if (result == ARCHIVE_EOF) {
      Drain();
      return nullptr;
    }
    Require(result);
    Check(entry != nullptr, name_, ": a member without a header");
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr) name = archive_entry_pathname_utf8(entry);
    Check(name != nullptr, name_, ": a member after '", member_, "' has no readable name");
    member_ = name;
    return entry;
  }

  std::string Data(size_t max_bytes) {
    std::string bytes;
    while (bytes.size() < max_bytes) {
      const size_t used = bytes.size();
      bytes.resize(std::min(max_bytes, used + (used < kBlockBytes ? kSmallBytes : kBlockBytes)));
      const la_ssize_t got =
          archive_read_data(archive_.get(), bytes.data() + used, bytes.size() - used);
      if (got < 0) Require(static_cast<int>(got));
      bytes.resize(used + static_cast<size_t>(std::max<la_ssize_t>(got, 0)));
      if (got == 0) break;
    }
    return bytes;
  }

  const std::string& member() const { return member_; }

 private:
  // What libarchive calls for more bytes. An exception must not pass through it: it is kept.
  static la_ssize_t Block(archive* a, void* self, const void** block) {
    Reader& reader = *static_cast<Reader*>(self);
    try {
      *block = reader.block_.data();
      return static_cast<la_ssize_t>(reader.ReadBlock());
    } catch (const std::exception& error) {
      reader.reason_ = error.what();
      archive_set_error(a, EIO, "%s", error.what());
      return -1;
    }
  }

  size_t ReadBlock() {
    const size_t got = unpacker_->Read(block_.data(), block_.size());
    status_.Update(unpacker_->Share());
    return got;
  }

  // What lies behind the archive's end belongs to the file all the same, and so do the checksums
  // there.
  void Drain() {
    try {
      while (ReadBlock() > 0) {
      }
    } catch (const std::exception& error) {
      FailWith(error.what());
    }
  }

  void Require(int result) {
    if (result == ARCHIVE_OK) return;
    const char* text = archive_error_string(archive_.get());
    const std::string reason = !reason_.empty() ? reason_ : text != nullptr ? text : "no reason";
    if (result != ARCHIVE_WARN) FailWith(reason);
    // The member is there, something about it (its owner, a date) is odd.
    WarnOnce(Concat(name_, ": ", reason));
  }

  [[noreturn]] void FailWith(const std::string& reason) const {
    if (member_.empty())
      Fail(name_, ": no readable .tar, .tar.gz or .tar.xz archive (", reason, "); get it again");
    Fail(name_, ": damaged or cut short, at or after '", member_, "' (", reason, "); get it again");
  }

  std::string name_;
  std::string member_;
  std::string reason_;  // why the unpacker failed
  std::unique_ptr<Unpacker> unpacker_;
  std::array<char, kBlockBytes> block_;
  StatusLine status_;
  std::unique_ptr<archive, Free> archive_;  // reads from all of the above
};

// Nothing is ever written, so a climbing path could do no harm; it says that the archive is not
// what it claims to be.
std::string SafePath(const std::string& archive, const std::string& member) {
  Check(member[0] != '/', archive, ": member '", member, "' has an absolute path; refused");
  std::string path;
  for (size_t begin = 0; begin < member.size();) {
    const size_t end = std::min(member.find('/', begin), member.size());
    const std::string part = member.substr(begin, end - begin);
    Check(part != "..", archive, ": member '", member,
          "' climbs out of the archive's folder; refused");
    if (!part.empty() && part != ".") path += (path.empty() ? "" : "/") + part;
    begin = end + 1;
  }
  return path;
}

using Wanted = std::function<bool(const std::string& path)>;
using Take = std::function<void(const std::string& path, const std::string& bytes)>;
using Open = std::function<std::unique_ptr<Unpacker>()>;

void Walk(const std::string& archive, const Open& open, size_t max_bytes, const Wanted& wanted,
          const Take& take) {
  std::unique_ptr<Unpacker> unpacker;
  try {
    unpacker = open();
  } catch (const Error& error) {
    Fail(archive, ": no readable .tar, .tar.gz or .tar.xz archive (", error.what(),
         "); get it again");
  }
  Reader reader(archive, std::move(unpacker));
  while (archive_entry* entry = reader.Next()) {
    const std::string path = SafePath(archive, reader.member());
    const auto type = archive_entry_filetype(entry);
    Check(archive_entry_hardlink(entry) == nullptr && type != AE_IFLNK, archive, ": member '",
          reader.member(), "' is a link; refused");
    if (type == AE_IFDIR) continue;
    Check(type == AE_IFREG, archive, ": member '", reader.member(),
          "' is neither a file nor a folder; refused");
    if (wanted(path)) take(path, reader.Data(max_bytes));
  }
}

}  // namespace

void ReadArchive(const std::string& archive, size_t max_bytes, const Wanted& wanted,
                 const Take& take) {
  std::error_code error;
  Check(std::filesystem::exists(archive, error), archive,
        ": no such file; --data names an archive or an unpacked folder");
  io::CheckPlainFile(archive);
  Walk(
      archive, [&] { return UnpackFile(archive); }, max_bytes, wanted, take);
}

void ReadArchive(std::string_view content, const std::string& name, size_t max_bytes,
                 const Wanted& wanted, const Take& take) {
  Walk(
      name, [&] { return UnpackMemory(content); }, max_bytes, wanted, take);
}

}  // namespace hkt::data
