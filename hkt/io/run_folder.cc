#include "hkt/io/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/base/version.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"

namespace hkt::io {
namespace {

constexpr std::string_view kKeptPrefix = "state-", kKeptSuffix = ".safetensors";

std::optional<std::array<int, 3>> ParseVersion(std::string_view text) {
  std::array<int, 3> parts{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0 && (at == end || *at++ != '.')) return std::nullopt;
    const auto [next, error] = std::from_chars(at, end, parts[i]);
    if (error != std::errc() || parts[i] < 0) return std::nullopt;
    at = next;
  }
  return at == end ? std::optional(parts) : std::nullopt;
}

}  // namespace

void CheckWrittenBy(std::string_view version, const std::string& what) {
  const auto written = ParseVersion(version);
  Check(written.has_value(), what, ": '", Printable(version),
        "' is not a version of hkt; the file is damaged or not one of ours");
  Check(*written <= ParseVersion(Version()).value(), what, " was written by hkt ", version,
        ", which is newer than this hkt ", Version(), "; update hkt to read it");
}

bool RunFolder::HoldsRun() const {
  std::error_code ignored;
  for (const auto& file : {config(), metrics(), model(), state(), evaluation(), analysis()}) {
    if (std::filesystem::exists(file, ignored)) return true;
  }
  return false;
}

std::filesystem::path RunFolder::state_after(int64_t step) const {
  return root_ / Concat(kKeptPrefix, step, kKeptSuffix);
}

std::vector<int64_t> RunFolder::kept_states() const {
  std::vector<int64_t> steps;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(root_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kKeptPrefix) || !name.ends_with(kKeptSuffix)) continue;
    const char* const end = name.data() + name.size() - kKeptSuffix.size();
    int64_t step = 0;
    const auto [next, error] = std::from_chars(name.data() + kKeptPrefix.size(), end, step);
    if (error == std::errc() && next == end && step >= 0) steps.push_back(step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

Config RunFolder::ReadConfig() const {
  std::error_code ignored;
  Check(std::filesystem::exists(config(), ignored), "no run in ", root_.string(), ": there is no ",
        config().string(), "; name the folder that 'hkt train' printed");
  const auto document = ParseJson<nlohmann::ordered_json>(ReadFile(config()), config().string());
  Check(document.is_object() && document.contains(kVersionKey), config().string(), ": ",
        kVersionKey, " is missing; not the file of a run");
  Config result;
  FromJson(document, result, config().string());
  Resolve(result);
  return result;
}

void RunFolder::WriteConfig(const Config& config_) const {
  nlohmann::ordered_json document;
  document[kVersionKey] = std::string(Version());
  document.update(ToJson(config_));
  WriteFileAtomically(config(), PrettyJson(document));
}

std::filesystem::path CreateNumberedFolder(const std::filesystem::path& parent,
                                           const std::string& stem) {
  CreateFolders(parent);
  for (int n = 1;; ++n) {
    const std::filesystem::path folder = parent / Concat(stem, "-", n);
    std::error_code error;
    // Creating it is the test, so that two runs that start together get two folders.
    if (std::filesystem::create_directory(folder, error)) return folder;
    if (error && !std::filesystem::exists(folder))
      throw Error(SystemMessage("create the folder", folder, error.value()));
  }
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) throw Error(SystemMessage("open the folder", folder, errno));
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(descriptor_);
    Fail("another process is training in ", folder.string(),
         "; wait for it, stop it, or choose another --out");
  }
  RemoveStaleTemporaries(folder);
}

FolderLock::~FolderLock() { ::close(descriptor_); }

}  // namespace hkt::io
