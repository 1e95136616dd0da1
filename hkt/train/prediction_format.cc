#include "hkt/train/prediction_format.h"

#include <algorithm>
#include <cstdio>

#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/io/json.h"

namespace hkt::train {
namespace {

using Json = nlohmann::ordered_json;

std::string Number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

// Nine digits: what fp32 logits have to say.
std::string CsvNumber(double value) { return Number("%.9g", value); }

std::string CsvLine(const Prediction& p, size_t classes) {
  std::string line = std::to_string(p.number);
  if (p.blank) return line + std::string(3 + classes, ',') + "\n";
  line +=
      "," + CsvField(p.name) + "," + CsvNumber(p.probability) + (p.truncated ? ",true" : ",false");
  for (const double probability : p.probabilities) line += "," + CsvNumber(probability);
  return line + "\n";
}

}  // namespace

std::string CsvField(std::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= ' ' && c != ',' && c != '"' && c != 127;
  });
  if (plain && !text.starts_with(' ') && !text.ends_with(' ')) return std::string(text);
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? "\"\"" : std::string(1, c);
  return field + "\"";
}

PredictionFormat ParsePredictionFormat(std::string_view name) {
  if (name == "text") return PredictionFormat::kText;
  if (name == "csv") return PredictionFormat::kCsv;
  if (name == "jsonl") return PredictionFormat::kJsonLines;
  throw UsageError(Concat("--format is '", name, "', must be one of text|csv|jsonl|json"));
}

std::string FormatHead(PredictionFormat format, const std::vector<std::string>& classes) {
  if (format != PredictionFormat::kCsv) return "";
  std::string line = "line,label,probability,truncated";
  for (const std::string& name : classes) line += "," + CsvField("p_" + name);
  return line + "\n";
}

std::string FormatPrediction(PredictionFormat format, const Prediction& p, size_t classes) {
  if (format == PredictionFormat::kCsv) return CsvLine(p, classes);
  if (format == PredictionFormat::kText)
    return p.blank ? "\n" : Printable(p.name) + Number("\t%.4f\n", p.probability);
  Json line = {{"line", p.number}};
  line.update(ToJson(p));
  return io::CompactJson(line) + "\n";
}

Json ToJson(const Prediction& p) {
  if (p.blank) {
    return {{"label", nullptr},
            {"probability", nullptr},
            {"probabilities", nullptr},
            {"truncated", nullptr}};
  }
  return {{"label", p.name},
          {"probability", p.probability},
          {"probabilities", p.probabilities},
          {"truncated", p.truncated}};
}

}  // namespace hkt::train
