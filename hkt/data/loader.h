#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hkt/data/dataset.h"

namespace hkt::data {

// Sequences padded on the right with 0 to the longest of them. Lengths are what says which
// positions are valid.
struct Batch {
  int64_t B = 0, T = 0;          // T = 0 where every sequence is empty
  int64_t channels = 1;          // as the Dataset
  std::vector<int64_t> ids;      // [B, T], or [B, T, channels] values of several channels
  std::vector<int64_t> lengths;  // [B], 0 ... T
  std::vector<int64_t> labels;   // [B]
  std::vector<int64_t> indices;  // [B], positions in the Dataset
};

// The next batch to hand out: all that resuming needs.
struct Position {
  int64_t epoch = 0;
  int64_t batch = 0;
  bool operator==(const Position&) const = default;
};

// The batches of one epoch as indices: every sequence once, shuffled globally, then sorted by
// length inside windows of some batches so that a batch holds similar lengths, then the batches
// shuffled. The last, smaller batch is kept and comes last. A pure function of its arguments.
std::vector<std::vector<int64_t>> PlanEpoch(const Dataset& dataset, int64_t batch, uint64_t seed,
                                            int64_t epoch);

// Every sequence once, longest first, the last, smaller batch included. Batch::indices say which is
// which.
std::vector<std::vector<int64_t>> PlanEvaluation(const Dataset& dataset, int64_t batch);

Batch Gather(const Dataset& dataset, std::span<const int64_t> indices);

// Endless training batches, gathered ahead in a thread of its own. The data set must outlive the
// loader and stay as it is. Not to be called from several threads at once.
class TrainLoader {
 public:
  // `change`, where given, is called with every batch and its epoch before it is handed out
  // (augmentation); it must be a pure function of them. Error for an empty data set, a batch below
  // 1, or a position that these data do not have.
  using Change = std::function<void(Batch& batch, int64_t epoch)>;
  TrainLoader(const Dataset& dataset, int64_t batch, uint64_t seed, Position start,
              Change change = {});
  ~TrainLoader();
  TrainLoader(const TrainLoader&) = delete;
  TrainLoader& operator=(const TrainLoader&) = delete;

  // What fails in the thread is thrown here.
  Batch Next();

  // Of the batch that Next() will return: a new loader started there continues with exactly the
  // same batches.
  Position position() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hkt::data
