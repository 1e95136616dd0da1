#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hkt::bench {

// Something to time. Contenders of one comparison take turns in one run, so that the noise of a
// shared machine meets them all.
struct Contender {
  std::string name;
  std::function<void()> call;
  double flops = 0;  // useful floating-point operations of a call; 0: not given
};

struct Timing {
  std::string name;
  double flops = 0;
  std::vector<double> seconds;  // of every call, in order

  double Best() const;
  double Median() const;
  double Quantile(double q) const;  // 0 … 1, between neighbours linearly
};

struct TimingOptions {
  int64_t calls = 30;        // of every contender at least
  double min_seconds = 0.5;  // of all together at least
  double max_seconds = 120;  // stop here, but not before 3 calls each
};

// One untimed call each, then rounds of one call each, in a new order every round: who comes after
// whom decides what lies in the caches.
std::vector<Timing> RunInTurns(const std::vector<Contender>& contenders,
                               const TimingOptions& options);

// best, median, 10 % and 90 % quantiles in seconds, calls, GFLOP/s at the best and at the median.
nlohmann::ordered_json ToJson(const Timing& timing);

// a / b: of the best times, and the median over the rounds of the quotient in one round.
nlohmann::ordered_json Ratio(const Timing& a, const Timing& b);

// Largest growth of this process's memory while `call` runs, in bytes; below 0 where the system
// does not tell (it needs a writable /proc/self/clear_refs).
int64_t MemoryGrowth(const std::function<void()>& call);

// Numbers of threads to time at: those given, or 1 and all.
std::vector<int64_t> ThreadCounts(const std::vector<int64_t>& given);

// PyTorch's number of threads, given back at the end.
class ThreadsGuard {
 public:
  ThreadsGuard();
  ~ThreadsGuard();
  ThreadsGuard(const ThreadsGuard&) = delete;
  ThreadsGuard& operator=(const ThreadsGuard&) = delete;

 private:
  int before_;
};

}  // namespace hkt::bench
