#include "hkt/train/system.h"

#include <ATen/Parallel.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <string>
#include <thread>

#include "hkt/base/error.h"

namespace hkt::train {

void CheckThreads(int64_t threads) {
  const int64_t most = std::max<int64_t>(64, 4 * int64_t{std::thread::hardware_concurrency()});
  CheckUsage(threads >= 0 && threads <= most, "threads is ", threads,
             ", must be from 0 (PyTorch's own choice) to ", most,
             " on this machine; set --threads");
}

void SetThreads(int64_t threads) {
  CheckThreads(threads);
  if (threads > 0) at::set_num_threads(static_cast<int>(threads));
}

int64_t Threads() { return at::get_num_threads(); }

void TuneAllocator() {
#ifdef __GLIBC__
  // Up to 1 GiB from the heap, and the heap is not trimmed.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

void RestartWithoutThreadCache(char** argv) {
#ifdef __GLIBC__
  const char* set = std::getenv("GLIBC_TUNABLES");
  const std::string before = set != nullptr ? set : "";
  if (before.find("glibc.malloc.tcache_count") != std::string::npos) return;
  const std::string tunables = (before.empty() ? "" : before + ":") + "glibc.malloc.tcache_count=0";
  setenv("GLIBC_TUNABLES", tunables.c_str(), 1);
  execv("/proc/self/exe",
        argv);  // comes back only when it failed; then the program goes on as it is
#else
  static_cast<void>(argv);
#endif
}

double PhysicalMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? static_cast<double>(pages) * static_cast<double>(size) : 0;
}

double CpuSeconds() {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int64_t PeakMemory() {
  struct rusage usage;
  if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  return int64_t{usage.ru_maxrss} * 1024;  // Linux counts in KiB
}

}  // namespace hkt::train
