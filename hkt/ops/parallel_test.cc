// The pool that kernels run in.

#include "hkt/ops/parallel.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace hkt::ops {
namespace {

constexpr double kMuch = 1e12;

class ParallelTest : public ::testing::Test {
 protected:
  void SetUp() override { at::set_num_threads(2); }
  void TearDown() override { at::set_num_threads(before_); }

 private:
  int before_ = at::get_num_threads();
};

// Each worker waits for the other, so that a loop that runs them one after the other never ends: it
// is given up after a while.
TEST_F(ParallelTest, TwoThreadsReallyRun) {
  const kernels::Parallel pool = PoolFor(kMuch);
  ASSERT_EQ(pool.workers, 2);
  std::atomic<int> arrived = 0, met = 0;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  pool.run(pool.workers, [&](int64_t) {
    ++arrived;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived < 2 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (arrived == 2) ++met;
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(met, 2);
  EXPECT_EQ(threads.size(), 2u);
}

TEST_F(ParallelTest, EveryWorkerIsCalledOnce) {
  for (int threads : {1, 2, 5}) {
    at::set_num_threads(threads);
    const kernels::Parallel pool = PoolFor(kMuch);
    EXPECT_EQ(pool.workers, threads);
    std::vector<std::atomic<int>> calls(static_cast<size_t>(pool.workers));
    pool.run(pool.workers, [&](int64_t worker) { ++calls[static_cast<size_t>(worker)]; });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1);
  }
}

TEST_F(ParallelTest, LittleWorkWakesNoThread) {
  EXPECT_EQ(PoolFor(0).workers, 1);
  EXPECT_EQ(PoolFor(1e5).workers, 1);
  at::set_num_threads(3);
  EXPECT_EQ(PoolFor(2.5e6).workers, 2) << "as many threads as the work is worth";
}

TEST_F(ParallelTest, NothingNests) {
  std::atomic<int64_t> most = 0;
  at::parallel_for(
      0, 2, 1, [&](int64_t, int64_t) { most = std::max<int64_t>(most, PoolFor(kMuch).workers); });
  EXPECT_EQ(most, 1);
}

TEST_F(ParallelTest, AnErrorOfAWorkerReachesTheCaller) {
  const kernels::Parallel pool = PoolFor(kMuch);
  EXPECT_THROW(pool.run(pool.workers,
                        [](int64_t worker) {
                          if (worker == 1) throw std::runtime_error("worker");
                        }),
               std::runtime_error);
}

}  // namespace
}  // namespace hkt::ops
