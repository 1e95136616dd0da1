#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hkt::bench {

// What one operator (ATen's, ours, or a node of the backward pass) took in one call of what was
// profiled: its own time, without the operators that it calls.
struct OperatorTime {
  std::string name;
  std::string
      part;  // of a training step: "attention", "products" (matrix products), "gelu", "rest"
  double seconds = 0;
  double calls = 0;
};

struct Profile {
  double seconds = 0;                   // of one call, everything included
  std::vector<OperatorTime> operators;  // the dearest first
};

// Calls `call` `calls` times on this thread (at least 1) and returns the means. Observes what the
// calling thread dispatches: a backward pass over CPU tensors runs on it. What an operator of a
// part calls (the zeros that an attention fills, say) belongs to that part. The observer costs
// about a microsecond an operator.
Profile ProfileCalls(const std::function<void()>& call, int64_t calls);

// {"seconds", "parts": {part: share}, "operators": [{"name", "part", "seconds", "share",
// "calls"}]}. What no operator accounts for (between operators) counts as rest, under the name
// "(between)".
nlohmann::ordered_json ToJson(const Profile& profile);

}  // namespace hkt::bench
