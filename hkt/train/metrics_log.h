#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "hkt/io/event_file.h"
#include "hkt/io/run_folder.h"

namespace hkt::train {

// Where the figures of a run go: a line each in metrics.jsonl, and the same numbers in an event
// file for TensorBoard. The line decides; what TensorBoard shows is derived from it by one table.
class MetricsLog {
 public:
  explicit MetricsLog(const io::RunFolder& folder) : folder_(folder) {}

  // From here on events are written, too. `first_step`: the first one that this session will log;
  // what an earlier session wrote of it and of later ones is withdrawn.
  void BeginEvents(int64_t first_step);

  // Throws Error where one of the two files cannot be written; the other one was tried.
  void Write(const nlohmann::ordered_json& line);

 private:
  io::RunFolder folder_;
  std::optional<io::EventFile> events_;
};

// The tags and numbers of a line: "train/loss", "validation/accuracy", "lambda/block0_level1", …
// None for a kind of line that TensorBoard has no curve for.
io::Scalars ScalarsOf(const nlohmann::ordered_json& line);

}  // namespace hkt::train
