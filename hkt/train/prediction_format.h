#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "hkt/train/predict.h"

namespace hkt::train {

// A field of a CSV file (RFC 4180): in quotes, and quotes doubled, where it holds a comma, a quote
// or a control character, or blanks at an end.
std::string CsvField(std::string_view text);

// Predictions as text, a line each, with its line end. A blank sample has a line, too, so that the
// n-th line of output answers the n-th of input:
//   text   label<TAB>probability, control characters of the label as \x09   blank: nothing
//   csv    line,label,probability,truncated,<p of every class>   blank: the number alone
//   jsonl  {"line", "label", "probability", "probabilities", "truncated"}   blank: null but the
//   line
enum class PredictionFormat { kText, kCsv, kJsonLines };

// UsageError for another name than text, csv, jsonl.
PredictionFormat ParsePredictionFormat(std::string_view name);

// What comes before the first line: the names of the columns, or nothing.
std::string FormatHead(PredictionFormat format, const std::vector<std::string>& classes);
std::string FormatPrediction(PredictionFormat format, const Prediction& prediction, size_t classes);

// {label, probability, probabilities, truncated}, null of a blank sample.
nlohmann::ordered_json ToJson(const Prediction& prediction);

}  // namespace hkt::train
