#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hkt::data {

// One split of a task: the tokens of all sequences back to back, so that a hundred thousand
// sequences are three allocations. Token ids are 1 ... vocabulary-1; 0 is padding and occurs only
// in batches. A sequence may be empty. Where a step is not a token but several channels (colour
// images), `tokens` holds their values 0 ... 255, all channels of a step side by side.
struct Dataset {
  int64_t channels = 1;  // values a step
  std::vector<uint16_t> tokens;
  std::vector<int64_t> offsets{
      0};  // size() + 1 numbers: sequence i is tokens[offsets[i] ... offsets[i + 1])
  std::vector<int32_t> labels;
  int64_t truncated = 0;  // sequences that were longer than seq_len and were cut to it

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  // In steps.
  int64_t length(int64_t i) const { return (offsets[i + 1] - offsets[i]) / channels; }
  std::span<const uint16_t> sequence(int64_t i) const {
    return {tokens.data() + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])};
  }

  void Add(std::span<const uint16_t> sequence, int32_t label) {
    tokens.insert(tokens.end(), sequence.begin(), sequence.end());
    offsets.push_back(static_cast<int64_t>(tokens.size()));
    labels.push_back(label);
  }

  // Adds the first seq_len tokens and counts the cut; one channel.
  void AddCut(std::span<const uint16_t> sequence, int32_t label, int64_t seq_len) {
    const bool cut = static_cast<int64_t>(sequence.size()) > seq_len;
    truncated += cut;
    Add(cut ? sequence.first(static_cast<size_t>(seq_len)) : sequence, label);
  }
};

// Share of each label 0 ... classes-1; all zero for an empty split.
inline std::vector<double> LabelShares(const Dataset& dataset, int64_t classes) {
  std::vector<double> shares(static_cast<size_t>(classes), 0.0);
  for (int32_t label : dataset.labels) shares.at(static_cast<size_t>(label)) += 1.0;
  for (double& share : shares)
    share /= dataset.size() > 0 ? static_cast<double>(dataset.size()) : 1.0;
  return shares;
}

}  // namespace hkt::data
