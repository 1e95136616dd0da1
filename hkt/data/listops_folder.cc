#include "hkt/data/listops_folder.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "hkt/base/error.h"
#include "hkt/base/version.h"
#include "hkt/io/checksum.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"

namespace hkt::data::listops {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kManifest = "manifest.json";

std::string FileName(Split split) { return Concat(SplitName(split), ".tsv"); }

std::string Checksum(const std::string& content) {
  return io::Xxh3(std::as_bytes(std::span(content)));
}

std::string Lines(const Dataset& dataset) {
  std::string lines;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    lines += static_cast<char>('0' + dataset.labels[i]);
    lines += '\t';
    lines += Text(dataset.sequence(i));
    lines += '\n';
  }
  return lines;
}

// Removes what was begun unless it was finished.
class NewFolder {
 public:
  explicit NewFolder(const fs::path& folder) : folder_(folder) {
    std::error_code error;
    const bool there = fs::exists(folder_, error);
    Check(!there || (fs::is_directory(folder_) && fs::is_empty(folder_)), folder_.string(),
          ": already there and not an empty folder; name a new one with --out, or remove it first");
    if (!folder_.has_filename()) folder_ = folder_.parent_path();  // "DIR/"
    part_ = folder_;
    part_ += Concat(".part-", ::getpid());
    io::CreateFolders(part_);
    Register(part_);
    for (const Split split : kAllSplits) Register(part_ / FileName(split));
    Register(part_ / kManifest);
  }
  ~NewFolder() {
    std::error_code ignored;
    fs::remove_all(part_, ignored);
  }
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const fs::path& path() const { return part_; }

  void Finish() {
    std::error_code error;
    fs::rename(part_, folder_, error);
    if (error) throw Error(io::SystemMessage("create the folder", folder_, error.value()));
  }

 private:
  void Register(const fs::path& path) {
    on_signal_.push_back(std::make_unique<io::RemovedOnSignal>(path));
  }

  fs::path folder_, part_;
  std::vector<std::unique_ptr<io::RemovedOnSignal>> on_signal_;
};

Json ReadManifest(const std::string& folder) {
  const fs::path path = fs::path(folder) / kManifest;
  Check(!fs::exists(folder) || fs::is_directory(folder), folder, ": not a folder but ",
        io::KindOf(folder), "; task listops reads a folder made by 'hkt data make'");
  Check(fs::is_directory(folder), folder,
        ": no such folder; make it with 'hkt data make --task listops --out ", folder,
        "', or leave --data away to generate in memory");
  Check(fs::exists(path), folder, ": no manifest.json, so not a folder made by 'hkt data make'");
  return io::ParseJson<Json>(io::ReadFile(path), path.string());
}

}  // namespace

Json WriteFolder(const std::string& folder, const Preset& preset, uint64_t seed) {
  NewFolder part(folder);
  Json manifest = {{"version", kManifestVersion}, {"hkt_version", Version()},
                   {"task", "listops"},           {"preset", preset.name},
                   {"data_seed", seed},           {"splits", Json::object()}};
  const std::map<Split, Dataset> splits =
      Generate(preset, seed, {kAllSplits.begin(), kAllSplits.end()});
  for (const auto& [split, dataset] : splits) {
    const std::string lines = Lines(dataset);
    io::WriteFileAtomically(part.path() / FileName(split), lines);
    manifest["splits"][std::string(SplitName(split))] = {
        {"file", FileName(split)},
        {"examples", dataset.size()},
        {"tokens", dataset.tokens.size()},
        {"xxh3", Checksum(lines)},
        {"label_shares", LabelShares(dataset, kClasses)}};
  }
  io::WriteFileAtomically(part.path() / kManifest, io::PrettyJson(manifest));
  part.Finish();
  return manifest;
}

std::map<Split, Dataset> ReadFolder(const std::string& folder, const Preset& preset, uint64_t seed,
                                    int64_t seq_len, const std::set<Split>& splits) {
  const Json manifest = ReadManifest(folder);
  std::map<Split, Dataset> result;
  try {
    const int64_t version = manifest.at("version").get<int64_t>();
    Check(version <= kManifestVersion, folder, "/manifest.json: format ", version, " of hkt ",
          manifest.value("hkt_version", "?"), ", newer than this program's ", kManifestVersion,
          "; update hkt");
    const std::string its_preset = manifest.at("preset").get<std::string>();
    Check(its_preset == preset.name, folder, ": holds preset ", its_preset, ", asked for is ",
          preset.name, "; use --preset ", its_preset);
    const uint64_t its_seed = manifest.at("data_seed").get<uint64_t>();
    Check(its_seed == seed, folder, ": made with data seed ", its_seed, ", asked for is ", seed,
          "; use --data-seed ", its_seed);
    for (Split split : splits) {
      const std::string path = (fs::path(folder) / FileName(split)).string();
      const std::string content = io::ReadFile(path);
      result[split] = ParseLines(content, path, seq_len);
      Check(
          Checksum(content) ==
              manifest.at("splits").at(std::string(SplitName(split))).at("xxh3").get<std::string>(),
          path,
          ": not the file that was made (its checksum differs from manifest.json); make the folder "
          "again");
    }
  } catch (const Json::exception& error) {
    Fail(folder, "/manifest.json: not as 'hkt data make' writes it (", error.what(),
         "); make the folder again");
  }
  return result;
}

Dataset ParseLines(std::string_view content, const std::string& name, int64_t seq_len) {
  Dataset dataset;
  int64_t number = 0;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = std::min(content.find('\n', begin), content.size());
    const std::string_view line = content.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    Check(line.size() >= 2 && line[0] >= '0' && line[0] <= '9' && line[1] == '\t', name, ":",
          number, ": must be a label 0 ... 9, a tab and an expression");
    try {
      dataset.AddCut(Parse(line.substr(2)), line[0] - '0', seq_len);
    } catch (const Error& error) {
      Fail(name, ":", number, ": ", error.what());
    }
  }
  return dataset;
}

}  // namespace hkt::data::listops
