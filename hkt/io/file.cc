#include "hkt/io/file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "hkt/base/error.h"
#include "hkt/base/text.h"

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

// Read by a signal's handler, which may come at any moment.
std::array<std::atomic<const char*>, 32> on_signal;

extern "C" void RemoveAndLeave(int signal) {
  RemoveTemporaries();
  ::_exit(128 + signal);
}

std::filesystem::path TemporaryOf(const std::filesystem::path& path) {
  std::filesystem::path temporary = path;
  temporary += Concat(kTemporary, ::getpid());
  return temporary;
}

std::string_view KindOf(mode_t mode) {
  if (S_ISREG(mode)) return "a plain file";
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a FIFO (a named pipe)";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::string ReadUpTo(int descriptor, const std::string& name, size_t most, size_t expected) {
  // One more than expected: the read that finds the end then has room.
  std::string content(std::min(expected + 1, most), '\0');
  size_t used = 0;
  while (used < most) {
    if (used == content.size()) content.resize(std::min(most, used + (1 << 16)));
    const ssize_t got = ::read(descriptor, content.data() + used, content.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(SystemMessage("read", name, errno));
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  content.resize(used);
  return content;
}

[[noreturn]] void FailNotPlain(const std::filesystem::path& path, std::string_view kind) {
  Fail(path.string(), ": not a plain file but ", kind, "; name a file");
}

std::filesystem::path FolderOf(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

std::string SystemMessage(std::string_view verb, const std::filesystem::path& path, int error) {
  return Concat("cannot ", verb, " ", path.string(), ": ", std::generic_category().message(error),
                Remedy(error));
}

std::string_view KindOf(const std::filesystem::path& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 ? KindOf(status.st_mode) : "nothing";
}

void CheckPlainFile(const std::filesystem::path& path) {
  Check(path.native().find('\0') == std::string::npos, Printable(path.native()),
        ": a path cannot hold a NUL byte");
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) throw Error(SystemMessage("read", path, errno));
  if (!S_ISREG(status.st_mode)) FailNotPlain(path, KindOf(status.st_mode));
}

std::string ReadFile(const std::filesystem::path& path, size_t max_bytes) {
  CheckPlainFile(path);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) throw Error(SystemMessage("read", path, errno));
  struct stat status;
  if (::fstat(file.get(), &status) != 0) throw Error(SystemMessage("read", path, errno));
  // The size is a hint only: a file may grow, and those of /proc say 0.
  return ReadUpTo(file.get(), path.string(), max_bytes, static_cast<size_t>(status.st_size));
}

std::string ReadStream(int descriptor, const std::string& name, size_t max_bytes) {
  std::string content = ReadUpTo(descriptor, name, max_bytes + 1, /*expected=*/0);
  Check(content.size() <= max_bytes, name, ": more than ", max_bytes >> 20,
        " MiB; give it as a file, or in parts");
  return content;
}

RemovedOnSignal::RemovedOnSignal(const std::filesystem::path& path)
    : path_(path.string()), slot_(0) {
  for (; slot_ < on_signal.size(); ++slot_) {
    const char* none = nullptr;
    if (on_signal[slot_].compare_exchange_strong(none, path_.c_str())) return;
  }
}

RemovedOnSignal::~RemovedOnSignal() {
  if (slot_ < on_signal.size()) on_signal[slot_] = nullptr;
}

void RemoveTemporaries() {
  for (size_t i = on_signal.size(); i-- > 0;) {
    const char* path = on_signal[i];
    if (path == nullptr) continue;
    ::unlink(path);
    ::rmdir(path);
  }
}

void CleanUpOnSignals() {
  struct sigaction action = {}, before = {};
  action.sa_handler = RemoveAndLeave;
  sigfillset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);
  }
}

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(TemporaryOf(path_)), on_signal_(temporary_) {
  struct stat status;
  if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    FailNotPlain(path_, KindOf(status.st_mode));
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
  struct stat before;
  if (::stat(path.c_str(), &before) == 0 && !S_ISREG(before.st_mode))
    FailNotPlain(path, KindOf(before.st_mode));
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (file.get() < 0) throw Error(SystemMessage("write", path, errno));
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
