#include "hkt/train/metrics_log.h"

#include <array>
#include <limits>
#include <string>

#include "hkt/base/error.h"
#include "hkt/io/json_lines.h"

namespace hkt::train {
namespace {

using Json = nlohmann::ordered_json;

struct Curve {
  const char* key;  // of a line of kind "train"
  const char* tag;
};

constexpr std::array<Curve, 9> kTrainCurves = {{{"loss", "train/loss"},
                                                {"lr", "train/lr"},
                                                {"gradient_norm", "train/gradient_norm"},
                                                {"epoch", "train/epoch"},
                                                {"skipped", "train/skipped"},
                                                {"tokens", "train/tokens"},
                                                {"tokens_per_second", "speed/tokens_per_second"},
                                                {"flops_per_second", "speed/flops_per_second"},
                                                {"peak_memory_bytes", "memory/peak_bytes"}}};

double Number(const Json& value) {
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}

void AddFusion(const Json& line, const char* key, io::Scalars& scalars) {
  if (!line.contains(key)) return;
  const Json& layers = line[key];
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const auto& [statistic, levels] : layers[i].items()) {
      const std::string group = statistic == "mean" ? key : key + ("_" + statistic);
      for (size_t l = 0; l < levels.size(); ++l)
        scalars.emplace_back(Concat(group, "/block", i, "_level", l), Number(levels[l]));
    }
  }
}

}  // namespace

io::Scalars ScalarsOf(const Json& line) {
  io::Scalars scalars;
  const std::string kind = line.value("kind", "");
  if (kind == "train") {
    for (const Curve& curve : kTrainCurves)
      if (line.contains(curve.key)) scalars.emplace_back(curve.tag, Number(line[curve.key]));
    AddFusion(line, "lambda", scalars);
    AddFusion(line, "gate", scalars);
  } else if (kind == "eval") {
    for (const char* key : {"accuracy", "loss"})
      scalars.emplace_back(Concat(line.value("split", ""), "/", key), Number(line[key]));
  }
  return scalars;
}

void MetricsLog::BeginEvents(int64_t first_step) { events_.emplace(folder_.root(), first_step); }

void MetricsLog::Write(const Json& line) {
  std::optional<Error> failure;
  try {
    io::AppendJsonLine(folder_.metrics(), line);
  } catch (const Error& error) {
    failure = error;
  }
  const io::Scalars scalars = ScalarsOf(line);
  if (events_ && !scalars.empty()) events_->Add(line.at("step").get<int64_t>(), scalars);
  if (failure) throw *failure;
}

}  // namespace hkt::train
