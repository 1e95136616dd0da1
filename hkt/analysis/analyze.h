#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace hkt::analysis {

// The job of `hkt analyze`; no torch in this header.
struct AnalyzeRequest {
  std::string run = {};
  std::string compare = {};        // a second run; empty: none
  bool initial = false;            // the same on the weights that the run began with
  std::string data = {};           // empty: as the run was trained
  std::string export_to = {};      // folder for the example's matrices in full; empty: none
  int64_t examples = 1000;         // validation sequences for the levels removed
  int64_t pairs = 4096;            // of tokens, from each sequence
  bool attention_weights = false;  // pairs by the attention, for the error terms; else all alike
  std::optional<int64_t> example = {};   // of the validation split; none: the first that is drawn
  std::optional<std::string> text = {};  // looked at instead of a sequence of the split
  int64_t threads = 0;
};

// Hears what is being done, and how much of it: done of all.
using AnalyzeProgress = std::function<void(const std::string& what, int64_t done, int64_t all)>;

// What analysis.json is to hold (docs/analyze.md). Throws Error for a run that cannot be read and
// UsageError for a request that does not fit it.
nlohmann::ordered_json Analyze(const AnalyzeRequest& request, const AnalyzeProgress& progress);

void WriteAnalysis(const std::string& run, const nlohmann::ordered_json& document);

}  // namespace hkt::analysis
