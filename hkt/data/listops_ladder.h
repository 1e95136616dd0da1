#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "hkt/data/dataset.h"
#include "hkt/data/listops.h"

// What an accuracy on ListOps means: how many examples predictors get right that know only the top
// of the tree.

namespace hkt::data::listops {

struct Rung {
  std::string name;     // "majority", "root_operator", "depth_1", ...
  double accuracy = 0;  // on all examples
  // By root operator, MIN MAX MED SM; 0 where there are none.
  std::array<double, 4> by_operator{};
};

struct Ladder {
  int64_t examples = 0;
  std::array<int64_t, 4> operators{};  // examples by root operator, MIN MAX MED SM
  std::vector<Rung> rungs;
};

inline constexpr int64_t kLadderDraws = 100;

// The predictors, from the one that knows nothing to the one that knows all:
//   majority       the most frequent label of `train`
//   root_operator  the most frequent label of train's examples with the same root operator
//   depth_k        every operator to depth k (the root has 1) and the digits that are its
//   arguments;
//                  an operator at depth k + 1 is replaced by the value of one that the generator
//                  draws at that depth, and the most frequent value of the root in 100 such draws
//                  is the prediction (of equally frequent ones the smallest)
// up to k = max_depth - 1, below which there are digits only. `examples` are whole expressions of
// the preset. Deterministic by the seed. Error where train or examples are empty, or an expression
// is malformed.
Ladder ComputeLadder(const Preset& preset, const Dataset& train, const Dataset& examples,
                     uint64_t seed);

}  // namespace hkt::data::listops
