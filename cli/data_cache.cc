// hkt data cache: what was read before, and how to be rid of it.

#include <cstdio>
#include <memory>

#include "cli/data_jobs.h"
#include "cli/output.h"
#include "hkt/base/text.h"
#include "hkt/data/cache.h"

namespace hkt::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CacheFlags {
  bool clear = false, json = false;
};

void Run(const CacheFlags& flags) {
  const auto folder = data::CacheFolder();
  Json document = {{"folder", folder ? Json(folder->string()) : Json(nullptr)}};
  if (flags.clear) {
    document["removed"] = data::ClearCache();
    if (flags.json) return PrintJson(document);
  }
  const std::vector<data::CacheEntry> entries = data::ListCache();
  uintmax_t bytes = 0;
  document["entries"] = Json::array();
  for (const data::CacheEntry& entry : entries) {
    bytes += entry.bytes;
    document["entries"].push_back({{"file", entry.file.filename().string()},
                                   {"ok", entry.ok},
                                   {"bytes", entry.bytes},
                                   {"task", entry.task},
                                   {"split", entry.split},
                                   {"options", entry.options},
                                   {"examples", entry.examples},
                                   {"path", entry.path},
                                   {"hkt_version", entry.hkt_version}});
  }
  if (flags.json) return PrintJson(document);
  if (!folder) {
    std::printf("the cache is off (HKT_CACHE=0, or there is no home folder)\n");
    return;
  }
  if (flags.clear) {
    std::printf("%s removed from %s\n", Counted(document["removed"], "file").c_str(),
                Printable(folder->string()).c_str());
    return;
  }
  for (const data::CacheEntry& entry : entries) {
    std::printf("%8.1f MiB  %-8s %-10s %7lld examples  %s%s  %s\n",
                static_cast<double>(entry.bytes) / (1 << 20), entry.task.c_str(),
                entry.split.c_str(), static_cast<long long>(entry.examples),
                entry.ok ? "" : "DAMAGED, will be made anew: ", Printable(entry.path).c_str(),
                entry.options.c_str());
  }
  std::printf("%s, %.1f MiB in %s; remove them with: hkt data cache --clear\n",
              Counted(static_cast<int64_t>(entries.size()), "entry", "entries").c_str(),
              static_cast<double>(bytes) / (1 << 20), Printable(folder->string()).c_str());
}

}  // namespace

void AddCacheJob(CLI::App& parent) {
  auto flags = std::make_shared<CacheFlags>();
  CLI::App* command =
      parent.add_subcommand("cache", "list what was read and kept, with a check of each entry");
  command->add_flag("--clear", flags->clear, "remove all entries; files of others stay");
  command->add_flag("--json", flags->json, "one JSON document on stdout");
  command->callback([flags] { Run(*flags); });
}

}  // namespace hkt::cli
