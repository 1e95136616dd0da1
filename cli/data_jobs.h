#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "hkt/base/config.h"
#include "hkt/data/task.h"

// What the jobs of `hkt data` share; data.cc registers them.

namespace hkt::cli {

using Splits = std::map<data::Split, data::Dataset>;

struct DataState {
  Config config;  // only config.data has flags
  std::string out;
  bool json = false;

  const DataConfig& data() const { return config.data; }
  bool is_listops() const { return data().task == "listops"; }
};

data::LoadedTask LoadAll(const DataConfig& config);

// What every document begins with, and every text.
nlohmann::ordered_json DataHeader(const DataConfig& config);
void PrintDataTitle(const DataConfig& config);

void Floors(const DataState& state);  // data_floors.cc
void Ladder(const DataState& state);  // data_floors.cc
void AddCacheJob(CLI::App& parent);   // data_cache.cc

}  // namespace hkt::cli
