// hkt data make | check | describe | floors | ladder | cache; multiscale is in data_multiscale.cc

#include <cstdio>
#include <map>
#include <memory>
#include <string>

#include "cli/config_options.h"
#include "cli/data_jobs.h"
#include "cli/data_multiscale.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "hkt/base/config.h"
#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/data/listops_folder.h"
#include "hkt/data/statistics.h"
#include "hkt/data/task.h"

namespace hkt::cli {
namespace {

using data::Dataset;
using data::Split;
using Json = nlohmann::ordered_json;

const char* Name(Split split) { return data::SplitName(split).data(); }

long long Long(int64_t value) { return value; }

void Make(const DataState& state) {
  CheckUsage(state.is_listops(), "of task ", state.data().task,
             " nothing is to be made: give the authors' archive or its unpacked folder to the "
             "other commands as --data "
             "PATH ('hkt data check' reads it once)");
  CheckUsage(state.data().data.empty(),
             "hkt data make writes to --out DIR; --data is what other commands read");
  CheckUsage(!state.data().seq_len,
             "hkt data make writes whole expressions; give --seq-len to the commands that read");
  CheckUsage(!state.out.empty(), "hkt data make needs --out DIR, the folder to make");
  const Json manifest =
      data::listops::WriteFolder(state.out, data::listops::FindPreset(state.data().preset),
                                 static_cast<uint64_t>(state.data().data_seed));
  if (state.json) return PrintJson(manifest);
  for (const auto& [name, split] : manifest["splits"].items()) {
    std::printf("%-11s %7lld examples %10lld tokens  %s/%s\n", name.c_str(),
                split["examples"].get<long long>(), split["tokens"].get<long long>(),
                state.out.c_str(), split["file"].get<std::string>().c_str());
  }
  std::printf("use it with --task listops --preset %s --data-seed %lld --data %s\n",
              state.data().preset.c_str(), Long(state.data().data_seed), state.out.c_str());
}

void CheckData(const DataState& state) {
  DataConfig config = state.data();
  if (state.is_listops()) config.seq_len.reset();  // a cut expression has no value to compare
  const Splits splits = LoadAll(config).splits;
  if (state.is_listops()) data::listops::Verify(data::listops::FindPreset(config.preset), splits);
  Json document = DataHeader(config);
  document["ok"] = true;
  for (const auto& [split, dataset] : splits) {
    Json entry = {{"examples", dataset.size()},
                  {"tokens", dataset.tokens.size()},
                  {"truncated", dataset.truncated},
                  {"empty", data::SummariseLengths(dataset).empty},
                  {"repeated", data::CountRepeats(dataset, dataset)}};
    if (split != Split::kTrain)
      entry["also_in_train"] = data::CountRepeats(dataset, splits.at(Split::kTrain));
    document["splits"][Name(split)] = entry;
  }
  if (state.json) return PrintJson(document);
  PrintDataTitle(config);
  for (const auto& [name, entry] : document["splits"].items()) {
    std::printf("%-11s", name.c_str());
    for (const auto& [key, value] : entry.items())
      std::printf("  %s %lld", key.c_str(), value.get<long long>());
    std::printf("\n");
  }
  std::printf(state.is_listops() ? "ok: every label is its expression's value, no expression "
                                   "twice, sizes as the preset says\n"
                                 : "ok: every file was read, every class is there\n");
}

Json LengthsJson(const data::LengthSummary& lengths) {
  return {{"min", lengths.min},    {"q25", lengths.q25}, {"median", lengths.median},
          {"q75", lengths.q75},    {"max", lengths.max}, {"mean", lengths.mean},
          {"empty", lengths.empty}};
}

void DescribeData(const DataState& state) {
  const auto [info, splits] = LoadAll(state.data());
  const int64_t classes = static_cast<int64_t>(info.classes.size());
  Json document = DataHeader(state.data());
  document["vocabulary"] = info.vocabulary;
  document["channels"] = info.channels;
  document["seq_len"] = info.seq_len;
  document["classes"] = info.classes;
  for (const auto& [split, dataset] : splits) {
    document["splits"][Name(split)] = {{"examples", dataset.size()},
                                       {"tokens", dataset.tokens.size()},
                                       {"truncated", dataset.truncated},
                                       {"lengths", LengthsJson(data::SummariseLengths(dataset))},
                                       {"label_shares", data::LabelShares(dataset, classes)}};
  }
  if (state.json) return PrintJson(document);
  PrintDataTitle(state.data());
  std::printf(info.channels == 1 ? "vocabulary %lld ids with padding" : "%lld values a channel",
              Long(info.vocabulary));
  std::printf(", longest sequence %lld %s, %lld classes\n\n", Long(info.seq_len),
              info.channels == 1 ? "tokens" : "steps of three channels", Long(classes));
  std::printf("%-11s %8s %10s %9s   length: min / quartiles / max\n", "split", "examples", "tokens",
              "truncated");
  for (const auto& [split, dataset] : splits) {
    const data::LengthSummary lengths = data::SummariseLengths(dataset);
    std::printf("%-11s %8lld %10lld %9lld   %lld / %lld  %lld  %lld / %lld\n", Name(split),
                Long(dataset.size()), static_cast<long long>(dataset.tokens.size()),
                Long(dataset.truncated), Long(lengths.min), Long(lengths.q25), Long(lengths.median),
                Long(lengths.q75), Long(lengths.max));
  }
  std::printf("\n%-24s", "label in %");
  for (const auto& [split, dataset] : splits) std::printf(" %10s", Name(split));
  std::printf("\n");
  std::vector<std::vector<double>> shares;
  for (const auto& [split, dataset] : splits) shares.push_back(data::LabelShares(dataset, classes));
  for (size_t c = 0; c < info.classes.size(); ++c) {
    std::printf("%-24s", Printable(info.classes[c]).c_str());
    for (const std::vector<double>& of_split : shares) std::printf(" %10.2f", 100 * of_split[c]);
    std::printf("\n");
  }
}

void AddJob(CLI::App& parent, const char* name, const char* help, void (*job)(const DataState&)) {
  auto state = std::make_shared<DataState>();
  CLI::App* command = parent.add_subcommand(name, help);
  AddConfigOptions(*command, state->config.data);
  command->add_flag("--json", state->json, "one JSON document on stdout");
  if (job == Make)
    command->add_option("--out", state->out, "folder to make; must be new or empty")
        ->type_name("DIR");
  command->callback([state, job] {
    Resolve(state->config);
    job(*state);
  });
}

void AddData(CLI::App& root) {
  CLI::App* data =
      root.add_subcommand("data", "make, check and describe data; floors that need no model");
  data->require_subcommand(1);
  AddJob(*data, "make", "write generated ListOps as files with a manifest", Make);
  AddJob(*data, "check", "read everything; ListOps: evaluate every expression, find repeats",
         CheckData);
  AddJob(*data, "describe", "sizes, lengths, labels, what was cut", DescribeData);
  AddJob(*data, "floors",
         "accuracy of the most frequent class and of logistic regression on token counts and, for "
         "images, on their values",
         Floors);
  AddJob(*data, "ladder", "ListOps: accuracy of predictors that know only the top of the tree",
         Ladder);
  AddCacheJob(*data);
  AddMultiscale(*data);
}

const Subcommand kData("data", AddData);

}  // namespace

data::LoadedTask LoadAll(const DataConfig& config) {
  return data::LoadTask(config, {Split::kTrain, Split::kValidation, Split::kTest});
}

Json DataHeader(const DataConfig& config) {
  Json header = {{"task", config.task}, {"data", config.data}, {"data_seed", config.data_seed}};
  if (config.task == "listops") header["preset"] = config.preset;
  if (config.task == "cifar10") header["rgb"] = config.rgb;
  return header;
}

void PrintDataTitle(const DataConfig& config) {
  std::printf("%s: %s\n", config.task.c_str(),
              config.data.empty()
                  ? Concat("generated, preset ", config.preset, ", seed ", config.data_seed).c_str()
                  : Printable(config.data).c_str());
}

}  // namespace hkt::cli
