#include "hkt/data/loader.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/data/streams.h"

namespace hkt::data {
namespace {

// Batches a window that is sorted by length. At 32 the padding of ListOps `short` falls from about
// half of all positions to some per cent, and a batch is still drawn from a thousand random
// sequences.
constexpr int64_t kWindow = 32;

// Batches gathered ahead: enough to hide a slow moment, little memory.
constexpr size_t kAhead = 4;

using Plan = std::vector<std::vector<int64_t>>;

int64_t BatchesAnEpoch(const Dataset& dataset, int64_t batch) {
  return (dataset.size() + batch - 1) / batch;
}

void CheckConsistent(const Dataset& dataset) {
  Check(dataset.offsets.size() == dataset.labels.size() + 1 && dataset.offsets.front() == 0 &&
            dataset.offsets.back() == static_cast<int64_t>(dataset.tokens.size()),
        "data set with ", dataset.labels.size(), " labels, ", dataset.offsets.size(),
        " offsets and ", dataset.tokens.size(), " tokens that do not fit each other");
}

std::vector<int64_t> AllIndices(const Dataset& dataset) {
  std::vector<int64_t> order(static_cast<size_t>(dataset.size()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

template <class Iterator>
void SortByLength(const Dataset& dataset, Iterator begin, Iterator end) {
  std::stable_sort(begin, end,
                   [&](int64_t a, int64_t b) { return dataset.length(a) < dataset.length(b); });
}

Plan Cut(const std::vector<int64_t>& order, int64_t batch) {
  Plan plan;
  for (size_t begin = 0; begin < order.size(); begin += static_cast<size_t>(batch)) {
    const size_t end = std::min(order.size(), begin + static_cast<size_t>(batch));
    plan.emplace_back(order.begin() + static_cast<int64_t>(begin),
                      order.begin() + static_cast<int64_t>(end));
  }
  return plan;
}

}  // namespace

Plan PlanEpoch(const Dataset& dataset, int64_t batch, uint64_t seed, int64_t epoch) {
  Check(batch >= 1, "batch is ", batch, ", must be at least 1");
  CheckConsistent(dataset);
  Random random({seed, kOrderStream, static_cast<uint64_t>(epoch)});
  std::vector<int64_t> order = AllIndices(dataset);
  random.Shuffle(order);
  // Only the full batches are sorted: the last one is what the shuffle left over, not the longest
  // of a window.
  const int64_t full = dataset.size() / batch * batch;
  for (int64_t begin = 0; begin < full; begin += kWindow * batch) {
    SortByLength(dataset, order.begin() + begin,
                 order.begin() + std::min(full, begin + kWindow * batch));
  }
  Plan plan = Cut(order, batch);
  std::vector<int64_t> rest;
  if (full < dataset.size()) {
    rest = std::move(plan.back());
    plan.pop_back();
  }
  random.Shuffle(plan);
  if (!rest.empty()) plan.push_back(std::move(rest));
  return plan;
}

Plan PlanEvaluation(const Dataset& dataset, int64_t batch) {
  Check(batch >= 1, "batch is ", batch, ", must be at least 1");
  CheckConsistent(dataset);
  std::vector<int64_t> order = AllIndices(dataset);
  SortByLength(dataset, order.begin(), order.end());
  // Longest first: what a batch frees has room for the next, and memory that does not suffice shows
  // at once.
  std::reverse(order.begin(), order.end());
  return Cut(order, batch);
}

Batch Gather(const Dataset& dataset, std::span<const int64_t> indices) {
  CheckConsistent(dataset);
  Batch batch;
  batch.B = static_cast<int64_t>(indices.size());
  batch.channels = dataset.channels;
  batch.indices.assign(indices.begin(), indices.end());
  for (int64_t i : indices) {
    Check(i >= 0 && i < dataset.size(), "sequence ", i, " of a data set of ", dataset.size());
    batch.lengths.push_back(dataset.length(i));
    batch.labels.push_back(dataset.labels[i]);
    batch.T = std::max(batch.T, dataset.length(i));
  }
  const int64_t row = batch.T * batch.channels;
  batch.ids.assign(static_cast<size_t>(batch.B * row), 0);
  for (int64_t b = 0; b < batch.B; ++b) {
    const std::span<const uint16_t> sequence = dataset.sequence(indices[b]);
    std::copy(sequence.begin(), sequence.end(), batch.ids.begin() + b * row);
  }
  return batch;
}

class TrainLoader::Impl {
 public:
  Impl(const Dataset& dataset, int64_t batch, uint64_t seed, Position start, Change change)
      : dataset_(dataset),
        batch_(batch),
        seed_(seed),
        change_(std::move(change)),
        position_(start) {
    Check(dataset.size() > 0, "the training split is empty");
    Check(batch >= 1, "batch is ", batch, ", must be at least 1");
    const int64_t batches = BatchesAnEpoch(dataset, batch);
    Check(start.epoch >= 0 && start.batch >= 0 && start.batch <= batches, "cannot go on at epoch ",
          start.epoch, ", batch ", start.batch, ": these data have ", batches,
          " batches an epoch; the data or --batch are not those of the saved run");
    if (position_.batch == batches) position_ = {start.epoch + 1, 0};
    thread_ = std::thread([this, from = position_] { Prefetch(from); });
  }

  ~Impl() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  Batch Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || error_; });
    if (ready_.empty()) std::rethrow_exception(error_);
    Batch batch = std::move(ready_.front());
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    if (++position_.batch == BatchesAnEpoch(dataset_, batch_)) position_ = {position_.epoch + 1, 0};
    return batch;
  }

  Position position() const { return position_; }

 private:
  // In the thread. What it throws is kept for Next(), which first hands out the good batches before
  // it.
  void Prefetch(Position from) {
    try {
      for (int64_t epoch = from.epoch;; ++epoch) {
        const Plan plan = PlanEpoch(dataset_, batch_, seed_, epoch);
        for (size_t i = epoch == from.epoch ? static_cast<size_t>(from.batch) : 0; i < plan.size();
             ++i) {
          Batch batch = Gather(dataset_, plan[i]);
          if (change_) change_(batch, epoch);
          std::unique_lock lock(mutex_);
          changed_.wait(lock, [&] { return ready_.size() < kAhead || stop_; });
          if (stop_) return;
          ready_.push_back(std::move(batch));
          changed_.notify_all();
        }
      }
    } catch (...) {
      std::lock_guard lock(mutex_);
      error_ = std::current_exception();
      changed_.notify_all();
    }
  }

  const Dataset& dataset_;
  const int64_t batch_;
  const uint64_t seed_;
  const Change change_;
  Position position_;  // of the consumer
  std::mutex mutex_;   // of the following three
  std::deque<Batch> ready_;
  bool stop_ = false;
  std::exception_ptr error_;
  std::condition_variable changed_;
  std::thread thread_;
};

TrainLoader::TrainLoader(const Dataset& dataset, int64_t batch, uint64_t seed, Position start,
                         Change change)
    : impl_(std::make_unique<Impl>(dataset, batch, seed, start, std::move(change))) {}
TrainLoader::~TrainLoader() = default;
Batch TrainLoader::Next() { return impl_->Next(); }
Position TrainLoader::position() const { return impl_->position(); }

}  // namespace hkt::data
