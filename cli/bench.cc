// hkt bench: parsing and printing; the timing itself is bench/.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "bench/attention.h"
#include "bench/downsample.h"
#include "bench/peer.h"
#include "bench/train.h"
#include "cli/config_options.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "cli/subcommand.h"
#include "hkt/base/error.h"
#include "hkt/train/system.h"

namespace hkt::cli {
namespace {

using Json = nlohmann::ordered_json;

void CheckAll(const char* flag, const std::vector<int64_t>& values, int64_t min, int64_t max) {
  for (const int64_t value : values) {
    CheckUsage(value >= min && value <= max, flag, " is ", value, ", must be from ", min, " to ",
               max);
  }
}

void AddTimingOptions(CLI::App& app, bench::TimingOptions& timing) {
  app.add_option("--calls", timing.calls, "calls of every contender at least")
      ->capture_default_str();
  app.add_option("--min-seconds", timing.min_seconds, "time of a cell at least")
      ->capture_default_str();
  app.add_option("--max-seconds", timing.max_seconds,
                 "time of a cell after which 3 calls of each are enough")
      ->capture_default_str();
}

void CheckThreadCounts(const std::vector<int64_t>& counts) {
  for (const int64_t count : counts) {
    CheckUsage(count >= 1, "--threads is ", count, ", must be at least 1");
    train::CheckThreads(count);
  }
}

void CheckTiming(const bench::TimingOptions& timing) {
  CheckUsage(timing.calls >= 1 && timing.calls <= 1000000, "--calls is ", timing.calls,
             ", must be from 1 to 1000000");
  CheckUsage(timing.min_seconds >= 0, "--min-seconds is ", timing.min_seconds,
             ", must be at least 0");
  CheckUsage(timing.max_seconds >= 0, "--max-seconds is ", timing.max_seconds,
             ", must be at least 0");
}

// "name  best ms  median ms (p10 … p90)  calls  GF/s  % of the peak".
void PrintTimings(const Json& cell) {
  std::printf("  %-20s %10s %10s %21s %6s %8s %7s %10s\n", "", "best ms", "median ms",
              "p10 ... p90", "calls", "GFLOP/s", "% peak", "memory MiB");
  const Json none = Json::object();
  const Json& shares = cell.contains("peak_share") ? cell["peak_share"] : none;
  const Json& memory = cell.contains("memory_bytes") ? cell["memory_bytes"] : none;
  for (const auto& [name, timing] : cell["timings"].items()) {
    std::printf("  %-20s %10.3f %10.3f %9.3f ... %7.3f %6ld", name.c_str(),
                1e3 * timing["best_seconds"].get<double>(),
                1e3 * timing["median_seconds"].get<double>(),
                1e3 * timing["p10_seconds"].get<double>(),
                1e3 * timing["p90_seconds"].get<double>(), timing["calls"].get<long>());
    if (timing.contains("gflops_best")) std::printf(" %8.1f", timing["gflops_best"].get<double>());
    if (shares.contains(name)) std::printf(" %6.1f%%", 100 * shares[name]["best"].get<double>());
    if (memory.contains(name) && memory[name].is_number())
      std::printf(" %10.1f", memory[name].get<double>() / (1 << 20));
    std::printf("\n");
  }
}

void PrintRatios(const Json& ratios) {
  for (const auto& [name, ratio] : ratios.items()) {
    std::printf("  %-32s %6.3f of the best, %6.3f median\n", name.c_str(),
                ratio["best"].get<double>(), ratio["median"].get<double>());
  }
}

void PrintCell(const Json& cell) {
  for (const auto& [key, value] : cell.items()) {
    if (value.is_primitive()) {
      std::printf("%s=%s ", key.c_str(),
                  value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
    }
  }
  std::printf("\n");
  PrintTimings(cell);
  PrintRatios(cell["ratios"]);
  std::fflush(stdout);
}

// What takes at least 0.3 % of a step, by its own time.
void PrintProfile(const std::string& arm, const Json& profile) {
  std::printf("%s: %.1f ms a step under the profiler;", arm.c_str(),
              1e3 * profile["seconds"].get<double>());
  for (const auto& [part, share] : profile["parts"].items())
    std::printf(" %s %.1f %%", part.c_str(), 100 * share.get<double>());
  std::printf("\n");
  for (const Json& one : profile["operators"]) {
    if (one["share"].get<double>() < 0.003) continue;
    std::printf("  %-55s %-9s %9.3f ms %5.1f %% %7.1f calls\n",
                one["name"].get<std::string>().c_str(), one["part"].get<std::string>().c_str(),
                1e3 * one["seconds"].get<double>(), 100 * one["share"].get<double>(),
                one["calls"].get<double>());
  }
}

// The head of every report. Freed memory stays in the process, as in training: page faults of every
// output would be timed otherwise.
void PrintHead(bool json) {
  train::TuneAllocator();
  if (json) return;
  const Json environment = DescribeEnvironment();
  std::printf(
      "%s, %s, PyTorch %s (%s), commit %s\n", environment["processor"].get<std::string>().c_str(),
      environment["fused_kernels"].get<bool>() ? environment["target"].get<std::string>().c_str()
                                               : "fused kernels off",
      environment["torch_loaded"].get<std::string>().c_str(),
      environment["simd"].get<std::string>().c_str(),
      environment["commit"].get<std::string>().c_str());
}

void Finish(bool json, Json report) {
  if (!json) return;
  Json document = {{"environment", DescribeEnvironment()}};
  document.update(report);
  PrintJson(document);
}

struct AttentionFlags {
  bench::AttentionBenchOptions options;
  bool bidirectional = false, json = false;
};

void AddAttention(CLI::App& bench) {
  auto flags = std::make_shared<AttentionFlags>();
  bench::AttentionBenchOptions& o = flags->options;
  CLI::App* app = bench.add_subcommand(
      "attention", "multi-scale attention beside one level and stock PyTorch, in turn");
  app->add_option("--seq-len", o.seq_lens, "tokens T, one or more")->capture_default_str();
  app->add_option("--head-dim", o.head_dims, "head widths D, one or more")->capture_default_str();
  app->add_option("--threads", o.threads, "numbers of threads, one or more (default: 1 and all)");
  app->add_option("--batch-heads", o.batch_heads, "heads of all sequences, B * H")
      ->capture_default_str();
  app->add_option("--levels", o.levels, "resolutions L")->capture_default_str();
  app->add_option("--stride", o.stride, "downsampling stride s")->capture_default_str();
  app->add_flag("--bidirectional", flags->bidirectional, "without the causal mask");
  app->add_option(
      "--peer", o.peer,
      "a library with hkt_fwd and hkt_bwd (bench/peer.h) as a contender, at one thread");
  AddTimingOptions(*app, o.timing);
  app->add_flag("--json", flags->json, "one JSON document on stdout");
  app->callback([flags] {
    bench::AttentionBenchOptions& options = flags->options;
    CheckAll("--seq-len", options.seq_lens, 1, 1 << 20);
    CheckAll("--head-dim", options.head_dims, 1, 4096);
    CheckThreadCounts(options.threads);
    CheckAll("--batch-heads", {options.batch_heads}, 1, 1 << 16);
    CheckAll("--levels", {options.levels}, 1, 16);
    CheckAll("--stride", {options.stride}, 2, 1024);
    CheckTiming(options.timing);
    options.causal = !flags->bidirectional;
    if (!options.peer.empty()) bench::LoadPeer(options.peer);  // fails before anything is printed
    PrintHead(flags->json);
    const bool json = flags->json;
    Finish(json, bench::BenchAttention(options, [json](const Json& cell) {
             if (!json) PrintCell(cell);
           }));
  });
}

struct DownsampleFlags {
  bench::DownsampleBenchOptions options;
  bool json = false;
};

void AddDownsample(CLI::App& bench) {
  auto flags = std::make_shared<DownsampleFlags>();
  bench::DownsampleBenchOptions& o = flags->options;
  CLI::App* app = bench.add_subcommand(
      "downsample", "one step of the pyramid beside the same in stock PyTorch, in turn");
  app->add_option("--seq-len", o.seq_lens, "tokens T, one or more")->capture_default_str();
  app->add_option("--d-model", o.widths, "widths d, one or more")->capture_default_str();
  app->add_option("--threads", o.threads, "numbers of threads, one or more (default: 1 and all)");
  app->add_option("--batch", o.batch, "sequences B")->capture_default_str();
  app->add_option("--kernel-size", o.kernel_size, "width k of the convolution")
      ->capture_default_str();
  app->add_option("--stride", o.stride, "downsampling stride s")->capture_default_str();
  AddTimingOptions(*app, o.timing);
  app->add_flag("--json", flags->json, "one JSON document on stdout");
  app->callback([flags] {
    bench::DownsampleBenchOptions& options = flags->options;
    CheckAll("--seq-len", options.seq_lens, 1, 1 << 20);
    CheckAll("--d-model", options.widths, 1, 1 << 16);
    CheckThreadCounts(options.threads);
    CheckAll("--batch", {options.batch}, 1, kMaxBatch);
    CheckAll("--kernel-size", {options.kernel_size}, 1, 1024);
    CheckAll("--stride", {options.stride}, 2, 1024);
    CheckTiming(options.timing);
    PrintHead(flags->json);
    const bool json = flags->json;
    Finish(json, bench::BenchDownsample(options, [json](const Json& cell) {
             if (!json) PrintCell(cell);
           }));
  });
}

struct TrainFlags {
  bench::TrainBenchOptions options;
  bool json = false;
};

void AddTrain(CLI::App& bench) {
  auto flags = std::make_shared<TrainFlags>();
  flags->options.config.data.task = "imdb";
  flags->options.timing = {.calls = 15, .min_seconds = 0, .max_seconds = 300};
  CLI::App* app = bench.add_subcommand(
      "train", "whole training steps: HKT and one level, on fused kernels and on stock PyTorch");
  AddTimingOptions(*app, flags->options.timing);
  app->add_option("--profile", flags->options.profile_steps,
                  "steps of every arm whose operators are timed one by one afterwards; 0: none")
      ->capture_default_str();
  app->add_flag("--json", flags->json, "one JSON document on stdout");
  AddConfigOptions(*app, flags->options.config);
  app->callback([flags] {
    Config config = flags->options.config;
    Resolve(config);
    CheckTiming(flags->options.timing);
    CheckAll("--profile", {flags->options.profile_steps}, 0, 1000);
    train::SetThreads(config.train.threads);
    PrintHead(flags->json);
    const Json report = bench::BenchTrain(flags->options);
    if (!flags->json) {
      std::printf("task=%s B=%ld T=%ld d_model=%ld heads=%ld layers=%ld threads=%ld\n",
                  config.data.task.c_str(), static_cast<long>(config.train.batch),
                  report["seq_len"].get<long>(), static_cast<long>(config.model.d_model),
                  static_cast<long>(config.model.heads), static_cast<long>(config.model.layers),
                  static_cast<long>(train::Threads()));
      Json memory = Json::object();
      for (const auto& [name, arm] : report["arms"].items()) memory[name] = arm["memory_bytes"];
      PrintTimings({{"timings", report["arms"]}, {"memory_bytes", memory}});
      PrintRatios(report["ratios"]);
      for (const auto& [name, arm] : report["arms"].items()) {
        if (arm.contains("profile")) PrintProfile(name, arm["profile"]);
      }
    }
    Finish(flags->json, report);
  });
}

void AddBench(CLI::App& root) {
  CLI::App* app = root.add_subcommand("bench", "time the kernels and the training step");
  app->require_subcommand(1);
  AddAttention(*app);
  AddDownsample(*app);
  AddTrain(*app);
}

const Subcommand kBench("bench", AddBench);

}  // namespace
}  // namespace hkt::cli
