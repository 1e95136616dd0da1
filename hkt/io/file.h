#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

// Files that are either the old ones or wholly the new ones, whatever happens in between. Every
// failure throws Error: the file, what the system said, and how to mend it.

namespace hkt::io {

// The whole file, byte for byte.
std::string ReadFile(const std::filesystem::path& path);

// Replaces `path` by what was written, or leaves it as it was. The bytes go to a temporary file in
// the same folder; Commit() syncs it, renames it over `path` and syncs the folder. Without Commit()
// the temporary file is removed.
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
