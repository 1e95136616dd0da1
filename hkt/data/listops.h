#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hkt/data/dataset.h"
#include "hkt/data/task.h"

// ListOps: nested list operations over digits, as the generator of Long Range Arena draws them.
//   [MAX 2 9 [MIN 4 7 ] 0 ]  ->  9
// The opening bracket and its operator are one token, the closing bracket is one: this expression
// has 9 tokens. MED is the median truncated to an integer, SM the sum modulo 10.

namespace hkt::data::listops {

using Tokens = std::span<const uint16_t>;

inline constexpr uint16_t kDigit = 1;  // ids 1 ... 10 are the digits 0 ... 9
inline constexpr uint16_t kMin = 11, kMax = 12, kMed = 13, kSm = 14, kClose = 15;
inline constexpr int64_t kVocabulary = 16;
inline constexpr int64_t kClasses = 10;

struct Preset {
  std::string_view name;
  uint64_t operators_in_4;  // a node above the depth limit is an operator with probability
                            // operators_in_4 / 4
  int max_depth;            // a node at this depth is a digit; the root has depth 1
  int max_args;             // an operator has 2 ... max_args arguments, uniformly
  int64_t min_tokens, max_tokens;
  int64_t train, validation, test;  // examples

  int64_t examples(Split split) const;
};

// "tiny", "short" or "lra"; UsageError for another name.
const Preset& FindPreset(std::string_view name);

// Text, as above, to ids. Error with the token at fault, or what is missing, where it is no
// expression.
std::vector<uint16_t> Parse(std::string_view text);
std::string Text(Tokens tokens);

// The value of one operator; the order of `values` is not kept.
int32_t Apply(uint16_t op, std::span<int32_t> values);

// The value 0 ... 9. Error where the tokens are no expression.
int32_t Evaluate(Tokens tokens);

// Depth of the deepest node, the root at 1: a digit has 1, [MAX 1 2 ] has 2. Of a cut expression:
// of what is there.
int Depth(Tokens tokens);

// "MIN", "MAX", "MED", "SM"; "none" where the root is a digit or there are no tokens.
std::string_view RootOperator(Tokens tokens);

// The same examples for the same preset and seed, on every machine and whichever splits are asked
// for; no expression occurs twice, neither in a split nor in two.
std::map<Split, Dataset> Generate(const Preset& preset, uint64_t seed,
                                  const std::set<Split>& splits);

// Values of `count` subtrees that the generator draws at this depth (the root has 1) and whose top
// is an operator. Error for a depth at which there are none.
std::vector<int32_t> OperatorValues(const Preset& preset, int depth, int64_t count, uint64_t seed);

}  // namespace hkt::data::listops
