#include "hkt/io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "hkt/base/error.h"

namespace hkt::io {
namespace {

constexpr std::string_view kTemporary = ".tmp-";

std::string Remedy(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; make room on that disk and run again";
    case EFBIG:
      return "; raise the limit on file sizes (ulimit -f)";
    case EROFS:
    case EACCES:
    case EPERM:
      return "; choose a place that you may use, or change its permissions";
    case ENOENT:
    case ENOTDIR:
      return "; check the path";
    case EISDIR:
      return "; name a file";
    default:
      return "";
  }
}

// Closes at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

std::filesystem::path FolderOf(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

std::string SystemMessage(std::string_view verb, const std::filesystem::path& path, int error) {
  return Concat("cannot ", verb, " ", path.string(), ": ", std::generic_category().message(error),
                Remedy(error));
}

std::string ReadFile(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw Error(SystemMessage("read", path, errno));
  struct stat status;
  if (::fstat(file.get(), &status) != 0) throw Error(SystemMessage("read", path, errno));
  if (S_ISDIR(status.st_mode)) throw Error(SystemMessage("read", path, EISDIR));
  std::string content(S_ISREG(status.st_mode) ? static_cast<size_t>(status.st_size) : 0, '\0');
  size_t used = 0;
  for (;;) {  // the size is a hint only: pipes have none, and a file may grow
    if (used == content.size()) content.resize(used + (1 << 16));
    const ssize_t got = ::read(file.get(), content.data() + used, content.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(SystemMessage("read", path, errno));
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  content.resize(used);
  return content;
}

AtomicFile::AtomicFile(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = path_;
  temporary_ += Concat(kTemporary, ::getpid());
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0) FailWrite(errno);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::FailWrite(int error) const {
  std::error_code ignored;
  throw Error(Concat(SystemMessage("write", path_, error), std::filesystem::exists(path_, ignored)
                                                               ? " (the file there is unchanged)"
                                                               : ""));
}

void AtomicFile::Write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) FailWrite(errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void AtomicFile::Write(std::string_view text) { Write(std::as_bytes(std::span(text))); }

void AtomicFile::Commit() {
  if (::fsync(descriptor_) != 0) FailWrite(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) FailWrite(errno);
  ::close(std::exchange(descriptor_, -1));
  // The rename itself must survive a power cut. Some file systems cannot sync a folder; the file is
  // there all the same.
  const Descriptor folder(::open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
}

void WriteFileAtomically(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.Write(content);
  file.Commit();
}

void AppendToFile(const std::filesystem::path& path, std::string_view bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) throw Error(SystemMessage("write", path, errno));
  struct stat before;
  const bool known = ::fstat(file.get(), &before) == 0;
  ssize_t written = 0;
  do {
    written = ::write(file.get(), bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  const int error = written < 0 ? errno : ENOSPC;  // a short write: the disk is full
  if (written == static_cast<ssize_t>(bytes.size())) return;
  if (written > 0 && known && ::ftruncate(file.get(), before.st_size) != 0) {
    // Nothing more can be done; readers leave a cut end out.
  }
  throw Error(SystemMessage("write", path, error));
}

void LinkOrCopy(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::error_code error;
  std::filesystem::remove(to, error);
  std::filesystem::create_hard_link(from, to, error);
  if (error) WriteFileAtomically(to, ReadFile(from));
}

void CheckWritable(const std::filesystem::path& folder) {
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw Error(SystemMessage("write into the folder", folder, errno));
}

void RemoveStaleTemporaries(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().find(kTemporary) != std::string::npos) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

void CreateFolders(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder))
    error = std::make_error_code(std::errc::not_a_directory);
  if (error) throw Error(SystemMessage("create the folder", folder, error.value()));
}

}  // namespace hkt::io
