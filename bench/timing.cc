#include "bench/timing.h"

#include <ATen/Parallel.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <numeric>

#include "hkt/base/error.h"
#include "hkt/base/random.h"

namespace hkt::bench {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double QuantileOf(std::vector<double> values, double q) {
  Check(!values.empty(), "no call was timed");
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(std::floor(position));
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - std::floor(position)) * (values[above] - values[below]);
}

// A line of /proc/self/status, in bytes; below 0 where there is none.
int64_t StatusBytes(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::stoll(line.substr(key.size() + 1)) * 1024;
  }
  return -1;
}

}  // namespace

double Timing::Best() const { return QuantileOf(seconds, 0); }
double Timing::Median() const { return QuantileOf(seconds, 0.5); }
double Timing::Quantile(double q) const { return QuantileOf(seconds, q); }

std::vector<Timing> RunInTurns(const std::vector<Contender>& contenders,
                               const TimingOptions& options) {
  std::vector<Timing> timings;
  for (const Contender& contender : contenders) {
    contender.call();
    timings.push_back({contender.name, contender.flops, {}});
  }
  std::vector<size_t> order(contenders.size());
  std::iota(order.begin(), order.end(), 0);
  Random random({0, 0});
  const auto begin = Clock::now();
  for (int64_t round = 0;; ++round) {
    const double elapsed = SecondsSince(begin);
    if (round >= options.calls && elapsed >= options.min_seconds) break;
    if (round >= 3 && elapsed >= options.max_seconds) break;
    random.Shuffle(order);
    for (const size_t i : order) {
      const auto start = Clock::now();
      contenders[i].call();
      timings[i].seconds.push_back(SecondsSince(start));
    }
  }
  return timings;
}

nlohmann::ordered_json ToJson(const Timing& timing) {
  nlohmann::ordered_json json = {{"best_seconds", timing.Best()},
                                 {"median_seconds", timing.Median()},
                                 {"p10_seconds", timing.Quantile(0.1)},
                                 {"p90_seconds", timing.Quantile(0.9)},
                                 {"calls", timing.seconds.size()}};
  if (timing.flops > 0) {
    json["gflops_best"] = timing.flops / timing.Best() / 1e9;
    json["gflops_median"] = timing.flops / timing.Median() / 1e9;
  }
  return json;
}

nlohmann::ordered_json Ratio(const Timing& a, const Timing& b) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(a.seconds.size(), b.seconds.size()); ++i)
    ratios.push_back(a.seconds[i] / b.seconds[i]);
  return {{"best", a.Best() / b.Best()}, {"median", QuantileOf(ratios, 0.5)}};
}

std::vector<int64_t> ThreadCounts(const std::vector<int64_t>& given) {
  if (!given.empty()) return given;
  const int64_t all = at::get_num_threads();
  return all > 1 ? std::vector<int64_t>{1, all} : std::vector<int64_t>{1};
}

ThreadsGuard::ThreadsGuard() : before_(at::get_num_threads()) {}
ThreadsGuard::~ThreadsGuard() { at::set_num_threads(before_); }

int64_t MemoryGrowth(const std::function<void()>& call) {
  malloc_trim(0);
  {
    std::ofstream reset("/proc/self/clear_refs");
    reset << "5" << std::flush;  // the peak starts anew
    if (!reset) return -1;
  }
  const int64_t before = StatusBytes("VmRSS");
  call();
  const int64_t peak = StatusBytes("VmHWM");
  return before < 0 || peak < 0 ? -1 : peak - before;
}

}  // namespace hkt::bench
