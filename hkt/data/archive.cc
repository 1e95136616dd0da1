#include "hkt/data/archive.h"

#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <memory>

#include "hkt/base/error.h"
#include "hkt/base/warn.h"

namespace hkt::data {
namespace {

constexpr size_t kBlockBytes = 1 << 16;

struct Free {
  void operator()(archive* a) const { archive_read_free(a); }
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), archive_(archive_read_new()) {
    Check(archive_ != nullptr, path_, ": out of memory");
    // Not support_filter_all: some filters would start programs.
    Require(archive_read_support_filter_gzip(archive_.get()));
    Require(archive_read_support_filter_bzip2(archive_.get()));
    Require(archive_read_support_filter_xz(archive_.get()));
    Require(archive_read_support_format_tar(archive_.get()));
    Require(archive_read_open_filename(archive_.get(), path.c_str(), kBlockBytes));
  }

  // The next member, or null at the end.
  archive_entry* Next() {
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(archive_.get(), &entry);
    if (result == ARCHIVE_EOF) return nullptr;
    Require(result);
    Check(entry != nullptr, path_, ": a member without a header");
    const char* name = archive_entry_pathname(entry);
    if (name == nullptr) name = archive_entry_pathname_utf8(entry);
    Check(name != nullptr, path_, ": a member after '", member_, "' has no readable name");
    member_ = name;
    return entry;
  }

  std::string Data(size_t max_bytes) {
    std::string bytes;
    char block[4096];
    while (bytes.size() < max_bytes) {
      const la_ssize_t got = archive_read_data(archive_.get(), block,
                                               std::min(sizeof block, max_bytes - bytes.size()));
      if (got == 0) break;
      if (got < 0) Require(static_cast<int>(got));
      bytes.append(block, static_cast<size_t>(got));
    }
    return bytes;
  }

  const std::string& member() const { return member_; }

 private:
  void Require(int result) {
    if (result == ARCHIVE_OK) return;
    const char* text = archive_error_string(archive_.get());
    const std::string reason = text != nullptr ? text : "no reason given";
    if (result ==
        ARCHIVE_WARN) {  // the member is there, something about it (its owner, a date) is odd
      WarnOnce(Concat(path_, ": ", reason));
    } else if (member_.empty()) {
      Fail(path_, ": no readable .tar, .tar.gz or .tar.xz archive (", reason, "); get it again");
    } else {
      Fail(path_, ": damaged or cut short, at or after '", member_, "' (", reason,
           "); get it again");
    }
  }

  std::string path_;
  std::string member_;
  std::unique_ptr<archive, Free> archive_;
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

}  // namespace

void ReadArchive(
    const std::string& archive, size_t max_bytes,
    const std::function<bool(const std::string& path)>& wanted,
    const std::function<void(const std::string& path, const std::string& bytes)>& take) {
  std::error_code error;
  Check(std::filesystem::exists(archive, error), archive,
        ": no such file; --data names an archive or an unpacked folder");
  Check(std::filesystem::is_regular_file(archive, error), archive, ": not a plain file");
  Reader reader(archive);
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

}  // namespace hkt::data
