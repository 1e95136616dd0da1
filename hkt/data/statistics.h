#pragma once

#include <cstdint>
#include <map>

#include "hkt/data/dataset.h"
#include "hkt/data/listops.h"
#include "hkt/data/task.h"

// What `hkt data check` and `hkt data describe` say about a data set.

namespace hkt::data {

// Steps (tokens) a sequence, after cutting; a quantile q is the length of the sequence at position
// floor(q (n - 1)) by length.
struct LengthSummary {
  int64_t min = 0, q25 = 0, median = 0, q75 = 0, max = 0;
  double mean = 0;
  int64_t empty = 0;  // sequences without a token
};

LengthSummary SummariseLengths(const Dataset& dataset);

// Sequences of `dataset` that occur, token for token, in `other`. Of a data set in itself: those
// that came before.
int64_t CountRepeats(const Dataset& dataset, const Dataset& other);

namespace listops {

// Evaluates every expression against its label and holds the examples to the preset: their number
// in every split, lengths, depth, none twice. Error that names the first split and example (from 1,
// its line in the file) at fault.
void Verify(const Preset& preset, const std::map<Split, Dataset>& splits);

}  // namespace listops
}  // namespace hkt::data
