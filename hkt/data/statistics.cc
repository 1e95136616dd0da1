#include "hkt/data/statistics.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "hkt/base/error.h"

namespace hkt::data {
namespace {

std::string_view Bytes(const Dataset& dataset, int64_t i) {
  const std::span<const std::byte> bytes = std::as_bytes(dataset.sequence(i));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

LengthSummary SummariseLengths(const Dataset& dataset) {
  LengthSummary summary;
  const int64_t n = dataset.size();
  if (n == 0) return summary;
  std::vector<int64_t> lengths(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) lengths[i] = dataset.length(i);
  std::sort(lengths.begin(), lengths.end());
  summary.min = lengths.front();
  summary.q25 = lengths[(n - 1) / 4];
  summary.median = lengths[(n - 1) / 2];
  summary.q75 = lengths[3 * (n - 1) / 4];
  summary.max = lengths.back();
  summary.empty = std::upper_bound(lengths.begin(), lengths.end(), 0) - lengths.begin();
  summary.mean =
      static_cast<double>(dataset.tokens.size()) / static_cast<double>(n * dataset.channels);
  return summary;
}

int64_t CountRepeats(const Dataset& dataset, const Dataset& other) {
  std::unordered_set<std::string_view> seen;
  int64_t repeats = 0;
  if (&dataset == &other) {
    for (int64_t i = 0; i < dataset.size(); ++i) repeats += !seen.insert(Bytes(dataset, i)).second;
    return repeats;
  }
  for (int64_t i = 0; i < other.size(); ++i) seen.insert(Bytes(other, i));
  for (int64_t i = 0; i < dataset.size(); ++i)
    repeats += static_cast<int64_t>(seen.count(Bytes(dataset, i)));
  return repeats;
}

void listops::Verify(const Preset& preset, const std::map<Split, Dataset>& splits) {
  std::unordered_map<std::string_view, std::string> seen;
  for (const auto& [split, dataset] : splits) {
    const std::string_view name = SplitName(split);
    Check(dataset.size() == preset.examples(split), name, " holds ", dataset.size(),
          " examples, preset ", preset.name, " has ", preset.examples(split));
    for (int64_t i = 0; i < dataset.size(); ++i) {
      const Tokens tokens = dataset.sequence(i);
      const std::string place = Concat(name, " example ", i + 1);
      int32_t value = 0;
      try {
        value = Evaluate(tokens);
      } catch (const Error& error) {
        Fail(place, ": ", error.what());
      }
      Check(value == dataset.labels[i], place, ": the label is ", dataset.labels[i],
            ", the expression's value ", value);
      const int64_t length = dataset.length(i);
      Check(length >= preset.min_tokens && length <= preset.max_tokens, place, " has ", length,
            " tokens, preset ", preset.name, " allows ", preset.min_tokens, " ... ",
            preset.max_tokens);
      Check(Depth(tokens) <= preset.max_depth, place, " has depth ", Depth(tokens), ", preset ",
            preset.name, " allows ", preset.max_depth);
      const auto [first, is_new] = seen.emplace(Bytes(dataset, i), place);
      Check(is_new, place, " is the same expression as ", first->second);
    }
  }
}

}  // namespace hkt::data
