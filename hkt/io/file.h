#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>

// Files that are either the old ones or wholly the new ones, whatever happens in between. Every
// failure throws Error: the file, what the system said, and how to mend it.

namespace hkt::io {

// What stands there: "a plain file", "a folder", "a FIFO (a named pipe)", "a socket", "a device",
// or "nothing". Links are followed.
std::string_view KindOf(const std::filesystem::path& path);

// Throws Error, naming the path and what it is, unless a plain file is there. Whatever reads data
// asks before it opens: a pipe without a writer would be waited for, and a device never ends.
void CheckPlainFile(const std::filesystem::path& path);

// The first max_bytes bytes of a plain file, byte for byte.
std::string ReadFile(const std::filesystem::path& path,
                     size_t max_bytes = std::numeric_limits<size_t>::max());

// All that comes from an open file, a pipe or a terminal, up to its end; `name` is for messages.
// Error for more than max_bytes.
std::string ReadStream(int descriptor, const std::string& name, size_t max_bytes);

// A path that a signal removes, a file or an empty folder, while this object lives. At most 32 at a
// time; what is beyond stays behind.
class RemovedOnSignal {
 public:
  explicit RemovedOnSignal(const std::filesystem::path& path);
  ~RemovedOnSignal();
  RemovedOnSignal(const RemovedOnSignal&) = delete;
  RemovedOnSignal& operator=(const RemovedOnSignal&) = delete;

 private:
  std::string path_;
  size_t slot_;
};

// SIGINT, SIGTERM and SIGHUP, where they are not ignored, remove those paths, the latest first, and
// end the process with status 128 + signal. For a program, at its start.
void CleanUpOnSignals();
// The removal alone; may be called in a signal's handler.
void RemoveTemporaries();

// Replaces `path` by what was written, or leaves it as it was. The bytes go to a temporary file in
// the same folder; Commit() syncs it, renames it over `path` and syncs the folder. Without Commit()
// the temporary file is removed. What is there and no plain file (a device, a pipe) is an Error: it
// would be replaced, too.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void Write(std::span<const std::byte> bytes);
  void Write(std::string_view text);
  void Commit();

 private:
  [[noreturn]] void FailWrite(int error) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  RemovedOnSignal on_signal_;
  int descriptor_ = -1;
};

void WriteFileAtomically(const std::filesystem::path& path, std::string_view content);

// Appends the bytes in one write and creates the file where there is none; a write that fails
// half-way is taken back.
void AppendToFile(const std::filesystem::path& path, std::string_view bytes);

// Gives the file `from` a second name in the same folder: a hard link where the file system has
// them, else a copy. What was under that name is replaced.
void LinkOrCopy(const std::filesystem::path& from, const std::filesystem::path& to);

// Throws Error unless this process may create files in the folder.
void CheckWritable(const std::filesystem::path& folder);

// Temporary files of AtomicFile that a killed process left in `folder`. Only for a caller who knows
// that nobody else writes there.
void RemoveStaleTemporaries(const std::filesystem::path& folder);

// Creates the folder and its parents.
void CreateFolders(const std::filesystem::path& folder);

// "cannot <verb> <path>: <what errno means>; <remedy>".
std::string SystemMessage(std::string_view verb, const std::filesystem::path& path, int error);

}  // namespace hkt::io
