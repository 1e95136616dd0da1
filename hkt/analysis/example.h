#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hkt/analysis/subject.h"
#include "hkt/data/dataset.h"

// One sequence looked at closely: who attends to whom, and which level says so.

namespace hkt::analysis {

// The matrices of one layer on one sequence, a block of rows at a time, for all heads.
// Attention: rows begin … end-1 of softmax(S), masked: [H, end - begin, T].
at::Tensor AttentionRows(const Layer& layer, const std::vector<at::Tensor>& levels, int64_t begin,
                         int64_t end);
// What level l adds to the fused score, score_gain w_l S^(l), at its own resolution, rows begin …
// end-1: [H, end - begin, T_l].
at::Tensor LevelRows(const Layer& layer, int64_t l, const std::vector<at::Tensor>& levels,
                     int64_t begin, int64_t end);

// Positions that one row of the averaged matrices stands for: the least with at most kMostRows
// rows.
inline constexpr int64_t kMostRows = 256;
int64_t BinSize(int64_t positions);

// The averages over blocks of BinSize(T) x BinSize(T), [H, rows, rows]. Attention: mean over the
// rows of a block of the sum over its columns, so that every row still sums to 1. Scores: mean over
// the block's valid pairs (j <= i with the causal mask; all others are skipped), NaN without one.
at::Tensor AveragedAttention(const Layer& layer, const std::vector<at::Tensor>& levels);
at::Tensor AveragedScores(const Layer& layer, int64_t l, const std::vector<at::Tensor>& levels);

// What is looked at: a sequence of the validation split, or a text of the user's own.
struct Example {
  data::Dataset alone;                // this one sequence; its label means nothing without `index`
  std::optional<int64_t> index = {};  // in the validation split
};

// UsageError for an index outside the split; Error for a sequence without tokens.
Example ExampleOfSplit(const AnalysisRun& run, int64_t index);
// UsageError for a blank text, one longer than the model's longest sequence, and a model of images;
// Error for a text that the task cannot encode.
Example ExampleOfText(const AnalysisRun& run, std::string_view text);

// example: tokens, prediction and the averaged matrices of every layer and head: docs/analyze.md.
Json ExampleToJson(const AnalysisRun& run, const std::vector<Layer>& layers,
                   const Example& example);

// The matrices in full: `folder`/example.safetensors and a CSV file a matrix; returns the names.
// Error when they would take more than 1 GiB.
std::vector<std::string> ExportExample(const AnalysisRun& run, const std::vector<Layer>& layers,
                                       const Example& example, const std::string& folder);

}  // namespace hkt::analysis
