#include <algorithm>
#include <array>
#include <unordered_set>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/data/listops.h"
#include "hkt/data/streams.h"

namespace hkt::data::listops {
namespace {

constexpr std::array<Preset, 3> kPresets = {{
    {.name = "tiny",
     .operators_in_4 = 2,
     .max_depth = 4,
     .max_args = 5,
     .min_tokens = 16,
     .max_tokens = 96,
     .train = 20000,
     .validation = 1000,
     .test = 2000},
    {.name = "short",
     .operators_in_4 = 2,
     .max_depth = 6,
     .max_args = 5,
     .min_tokens = 30,
     .max_tokens = 512,
     .train = 96000,
     .validation = 5000,
     .test = 10000},
    {.name = "lra",
     .operators_in_4 = 1,
     .max_depth = 10,
     .max_args = 10,
     .min_tokens = 501,
     .max_tokens = 1999,
     .train = 96000,
     .validation = 2000,
     .test = 2000},
}};

// Draws trees, writing their tokens and computing their values on the way.
class Generator {
 public:
  Generator(const Preset& preset, Random random) : preset_(preset), random_(std::move(random)) {}

  // The next expression of allowed length. The tokens are valid until the next call.
  std::pair<Tokens, int32_t> Next() {
    for (;;) {
      tokens_.clear();
      const int32_t value = Node(1);
      const int64_t length = static_cast<int64_t>(tokens_.size());
      if (length >= preset_.min_tokens && length <= preset_.max_tokens) return {tokens_, value};
    }
  }

  // The value of the next operator at `depth` with all that is below it.
  int32_t NextOperator(int depth) {
    for (;;) {
      tokens_.clear();
      const int32_t value = Node(depth);
      const int64_t length = static_cast<int64_t>(tokens_.size());
      if (length > 1 && length <= preset_.max_tokens) return value;
    }
  }

 private:
  // Once the tokens are too many the tree is given up: what is drawn then does not matter.
  int32_t Node(int depth) {
    if (depth >= preset_.max_depth || random_.Below(4) >= preset_.operators_in_4) {
      const uint16_t digit = static_cast<uint16_t>(random_.Below(10));
      tokens_.push_back(static_cast<uint16_t>(kDigit + digit));
      return digit;
    }
    const uint16_t op = static_cast<uint16_t>(kMin + random_.Below(4));
    const int64_t args = random_.Between(2, preset_.max_args);
    tokens_.push_back(op);
    std::array<int32_t, 16> values;
    for (int64_t i = 0; i < args; ++i) {
      values[i] = Node(depth + 1);
      if (static_cast<int64_t>(tokens_.size()) > preset_.max_tokens) return 0;
    }
    tokens_.push_back(kClose);
    return Apply(op, std::span(values.data(), args));
  }

  const Preset& preset_;
  Random random_;
  std::vector<uint16_t> tokens_;
};

// FNV-1a. Two different expressions with one hash would only cost the second of them its place.
uint64_t Hash(Tokens tokens) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (uint16_t token : tokens) hash = (hash ^ token) * 0x100000001b3u;
  return hash;
}

}  // namespace

int64_t Preset::examples(Split split) const {
  return split == Split::kTrain ? train : split == Split::kValidation ? validation : test;
}

const Preset& FindPreset(std::string_view name) {
  const auto found = std::find_if(kPresets.begin(), kPresets.end(),
                                  [&](const Preset& p) { return p.name == name; });
  CheckUsage(found != kPresets.end(), "preset is '", name, "', must be one of tiny|short|lra");
  return *found;
}

std::vector<int32_t> OperatorValues(const Preset& preset, int depth, int64_t count, uint64_t seed) {
  Check(depth >= 1 && depth < preset.max_depth, "preset ", preset.name,
        " has operators at the depths 1 ... ", preset.max_depth - 1, ", not at ", depth);
  Generator generator(preset, Random({seed, kLadderStream, static_cast<uint64_t>(depth)}));
  std::vector<int32_t> values;
  while (static_cast<int64_t>(values.size()) < count)
    values.push_back(generator.NextOperator(depth));
  return values;
}

std::map<Split, Dataset> Generate(const Preset& preset, uint64_t seed,
                                  const std::set<Split>& splits) {
  std::map<Split, Dataset> result;
  std::unordered_set<uint64_t> seen;
  Generator generator(preset, Random({seed, kListOpsStream}));
  // One stream for all splits, the small ones first: whoever wants the training split draws the
  // others too, so that it is disjoint from them, and that costs next to nothing; whoever wants the
  // test split alone stops after it.
  for (Split split : {Split::kTest, Split::kValidation, Split::kTrain}) {
    if (result.size() == splits.size()) break;
    Dataset* dataset = splits.count(split) ? &result[split] : nullptr;
    for (int64_t left = preset.examples(split); left > 0;) {
      const auto [tokens, value] = generator.Next();
      if (!seen.insert(Hash(tokens)).second) continue;
      --left;
      if (dataset != nullptr) dataset->Add(tokens, value);
    }
  }
  return result;
}

}  // namespace hkt::data::listops
