#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Event files, which TensorBoard reads: TFRecord frames of protobuf messages, written by hand as
// far as scalars need them (tensorboard/compat/proto/event.proto, summary.proto):
//   frame    length (8 bytes, little-endian), masked CRC-32C of these 8 bytes (4), message,
//            masked CRC-32C of the message (4);  masked(c) = (c >> 15 | c << 17) + 0xa282ead8
//   Event    wall_time = 1 (double), step = 2 (int64), and one of file_version = 3 (string),
//            summary = 5, session_log = 7
//   Summary  value = 1, repeated: Value { tag = 1 (string), simple_value = 2 (float) }
//   SessionLog  status = 1 (enum, START = 1)

namespace hkt::io {

using Scalars = std::vector<std::pair<std::string, double>>;  // tag, value

// The message of an event with scalars, and its frame.
std::string ScalarEvent(double wall_time, int64_t step, const Scalars& scalars);
std::string RecordFrame(std::string_view message);

// The event file of one session of a run, events.out.tfevents.<n>, n = 1, 2, … A run that goes on
// writes a new file behind the old ones, whose first event says from which step on it counts:
// TensorBoard then forgets what an earlier, killed session wrote of these steps. A file that was
// cut by a kill stays readable up to the cut.
class EventFile {
 public:
  // Names the file and writes nothing yet. `first_step`: the first one that this session will
  // write.
  EventFile(const std::filesystem::path& folder, int64_t first_step);

  const std::filesystem::path& path() const { return path_; }

  // One event. Throws Error where it cannot be written; then nothing of it is in the file.
  void Add(int64_t step, const Scalars& scalars);

 private:
  // Never goes back within a session, whatever the system's clock does.
  double WallTime() const;

  std::filesystem::path path_;
  int64_t first_step_;
  bool begun_ = false;
  double start_wall_time_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace hkt::io
