#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hkt/report/result_file.h"

namespace hkt::report {

// The runs of one row of the table, ordered by seed.
struct Row {
  std::string name, row;       // "imdb-hkt", "HKT"
  std::vector<int64_t> seeds;  // that are planned
  std::vector<const Result*> results;
};

// sum_r coefficient_r accuracy_r of every seed that all rows have, as an interval; the JSON of
// docs/report.md, "comparisons". In shares. No common seed: `seeds` is empty and the figures null.
struct Term {
  const Row* row;
  double coefficient;
};
nlohmann::ordered_json Contrast(const std::vector<Term>& terms);

// HKT less every other row of the table, with McNemar's test for every common seed; the other
// models in the order of the design.
nlohmann::ordered_json Comparisons(const std::vector<Row>& rows, const std::string& task);

// The two-by-two table: the hierarchy's effect with and without the convolution and on average, the
// same of the convolution, and their interaction. Effects whose rows are not planned are left out.
nlohmann::ordered_json Effects(const std::vector<Row>& rows);

// McNemar's test of two runs on the same test examples.
nlohmann::ordered_json McNemarJson(const Result& first, const Result& second);

}  // namespace hkt::report
