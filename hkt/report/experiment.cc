#include "hkt/report/experiment.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "hkt/base/error.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"

namespace hkt::report {
namespace {

namespace fs = std::filesystem;

constexpr int kMostBases = 8;
constexpr std::string_view kResults = "results";

// What belongs to the machine and the session, not to the experiment.
constexpr std::array<std::string_view, 4> kNotInFiles = {"data", "threads", "max_time", "seed"};
// What changes no figure of a result.
const std::set<std::string> kNotCompared = {"data",      "threads",  "save_every", "keep_states",
                                            "log_every", "max_time", "tensorboard"};

bool IsName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

Json ReadObject(const fs::path& path, const std::set<std::string>& keys) {
  const Json document = io::ParseJson<Json>(io::ReadFile(path), path.string());
  Check(document.is_object(), path.string(), ": must be a JSON object");
  for (const auto& [key, value] : document.items()) {
    std::string known;
    for (const std::string& one : keys) known += (known.empty() ? "" : ", ") + one;
    Check(keys.contains(key), path.string(), ": unknown key '", key, "'; there are ", known);
  }
  return document;
}

std::string Text(const Json& document, const char* key, const fs::path& path,
                 const char* otherwise = nullptr) {
  const auto found = document.find(key);
  if (found == document.end() && otherwise != nullptr) return otherwise;
  Check(found != document.end() && found->is_string(), path.string(), ": ", key,
        " must be there, as text in quotes");
  return found->get<std::string>();
}

// The options of a file over those of its bases.
Json MergedOptions(const Json& document, const fs::path& path, int depth = 0) {
  Check(depth < kMostBases, path.string(), ": its bases go in a circle");
  Json options = Json::object();
  if (document.contains("base")) {
    const std::string base = Text(document, "base", path);
    Check(IsName(base) && base.starts_with("_"), path.string(), ": base is '", base,
          "', must be a file of this folder that begins with _, without .json");
    const fs::path file = path.parent_path() / (base + ".json");
    Check(fs::exists(file), path.string(), ": there is no base ", file.string());
    options = MergedOptions(ReadObject(file, {"base", "note", "config"}), file, depth + 1);
  }
  const auto own = document.find("config");
  Check(own != document.end() && own->is_object(), path.string(),
        ": config must be there, an object of options of hkt train in snake_case");
  for (const auto& [key, value] : own->items()) {
    const bool foreign =
        std::find(kNotInFiles.begin(), kNotInFiles.end(), key) != kNotInFiles.end();
    Check(!foreign, path.string(), ": config has ", key,
          "; seeds stand beside config, data and threads are flags of hkt reproduce");
    options[key] = value;
  }
  return options;
}

std::vector<int64_t> Seeds(const Json& document, const fs::path& path) {
  std::vector<int64_t> seeds;
  const auto found = document.find("seeds");
  bool good = found != document.end() && found->is_array() && !found->empty();
  for (size_t i = 0; good && i < found->size(); ++i) {
    good = (*found)[i].is_number_integer() && (*found)[i].get<int64_t>() >= 0;
    if (good) seeds.push_back((*found)[i].get<int64_t>());
  }
  Check(good && std::set(seeds.begin(), seeds.end()).size() == seeds.size(), path.string(),
        ": seeds must be a list of different whole numbers from 0 on");
  return seeds;
}

void AddRuns(const fs::path& path, const std::string& tier, std::vector<ExperimentRun>& runs) {
  const Json document = ReadObject(path, {"row", "group", "base", "seeds", "note", "config"});
  ExperimentRun run;
  run.tier = tier;
  run.name = path.stem().string();
  Check(IsName(run.name), path.string(),
        ": the name of an experiment has small letters, digits, - _ and . only");
  run.row = Text(document, "row", path);
  run.group = Text(document, "group", path);
  run.note = Text(document, "note", path, "");
  const Json options = MergedOptions(document, path);
  for (const int64_t seed : Seeds(document, path)) {
    run.seed = seed;
    run.options = options;
    run.options["seed"] = seed;
    run.config = Config();
    try {
      io::FromJson(run.options, run.config, path.string());
      Resolve(run.config);
    } catch (const UsageError& error) {  // of a file, not of the command line
      const std::string message = error.what();
      Fail(message.starts_with(path.string()) ? "" : path.string() + ": ", message);
    }
    runs.push_back(run);
  }
}

std::string Tiers(const Places& places) {
  std::set<std::string> tiers;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(places.experiments, ignored)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_directory() && name != kResults) tiers.insert(name);
  }
  std::string list;
  for (const std::string& tier : tiers) list += (list.empty() ? "" : ", ") + tier;
  return list;
}

size_t GroupRank(const std::string& group) {
  constexpr std::array<std::string_view, 4> kOrder = {"table", "recipe", "smoke", "ablation"};
  return static_cast<size_t>(std::find(kOrder.begin(), kOrder.end(), group) - kOrder.begin());
}

}  // namespace

fs::path Places::results(const std::string& tier) const { return experiments / kResults / tier; }
fs::path Places::result(const ExperimentRun& run) const {
  return results(run.tier) / (run.id() + ".json");
}
fs::path Places::folder(const ExperimentRun& run) const { return runs / run.tier / run.id(); }
fs::path Places::log(const ExperimentRun& run) const {
  return runs / run.tier / (run.id() + ".log");
}

std::vector<ExperimentRun> ReadTier(const Places& places, const std::string& tier) {
  const fs::path folder = places.experiments / tier;
  CheckUsage(IsName(tier) && tier != kResults && fs::is_directory(folder), "no experiments in ",
             folder.string(), "; tiers are ", Tiers(places),
             " (hkt reproduce is run where the folder experiments lies)");
  std::vector<ExperimentRun> runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (path.extension() == ".json" && !path.filename().string().starts_with("_"))
      AddRuns(path, tier, runs);
  }
  Check(!runs.empty(), folder.string(), ": no experiment in it (<name>.json)");
  // Of each row its first seed, then its second: the table is whole early, and then gets sharper.
  std::sort(runs.begin(), runs.end(), [](const ExperimentRun& a, const ExperimentRun& b) {
    return std::tuple(GroupRank(a.group), a.seed, a.name) <
           std::tuple(GroupRank(b.group), b.seed, b.name);
  });
  return runs;
}

std::vector<ExperimentRun> Only(std::vector<ExperimentRun> runs,
                                const std::vector<std::string>& names) {
  if (names.empty()) return runs;
  std::set<std::string> rows, ids;
  for (const ExperimentRun& run : runs) {
    rows.insert(run.name);
    ids.insert(run.id());
  }
  std::string list;
  for (const std::string& row : rows) list += (list.empty() ? "" : ", ") + row;
  for (const std::string& name : names) {
    CheckUsage(rows.contains(name) || ids.contains(name), "--only names '", name, "', which tier ",
               runs.front().tier, " does not have; it has ", list, ", each also with its seed, as ",
               runs.front().id());
  }
  std::erase_if(runs, [&](const ExperimentRun& run) {
    return std::none_of(names.begin(), names.end(), [&](const std::string& name) {
      return name == run.name || name == run.id();
    });
  });
  return runs;
}

std::vector<std::string> ConfigDifferences(const ExperimentRun& run, const Json& stored,
                                           const std::string& what) {
  Config there;
  io::FromJson(stored, there, what);
  Resolve(there);
  const Json a = io::ToJson(there), b = io::ToJson(run.config);
  std::vector<std::string> differences;
  for (const auto& [name, value] : a.items()) {
    if (!kNotCompared.contains(name) && b[name] != value) {
      differences.push_back(Concat(name, " is ", io::CompactJson(value), " there, ",
                                   io::CompactJson(b[name]), " in the experiment"));
    }
  }
  return differences;
}

std::vector<std::string> TrainFlags(const ExperimentRun& run) {
  std::vector<std::string> flags;
  for (const auto& [key, value] : run.options.items()) {
    if (value.is_null()) continue;
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    if (value.is_boolean()) {
      flags.push_back((value.get<bool>() ? "--" : "--no-") + name);
    } else {
      flags.push_back("--" + name);
      flags.push_back(value.is_string() ? value.get<std::string>() : io::CompactJson(value));
    }
  }
  return flags;
}

}  // namespace hkt::report
