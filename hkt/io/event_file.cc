#include "hkt/io/event_file.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>

#include "hkt/base/error.h"
#include "hkt/io/checksum.h"
#include "hkt/io/file.h"

namespace hkt::io {
namespace {

constexpr std::string_view kPrefix = "events.out.tfevents.";

// Wire types of protobuf.
enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <class Unsigned>
void PutFixed(std::string& out, Unsigned value) {
  for (size_t i = 0; i < sizeof(value); ++i) out += static_cast<char>((value >> (8 * i)) & 0xFF);
}

void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

void PutTag(std::string& out, int field, Wire wire) {
  PutVarint(out, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

void PutBytes(std::string& out, int field, std::string_view bytes) {
  PutTag(out, field, Wire::kBytes);
  PutVarint(out, bytes.size());
  out += bytes;
}

void PutInteger(std::string& out, int field, int64_t value) {
  PutTag(out, field, Wire::kVarint);
  PutVarint(out, static_cast<uint64_t>(value));
}

// wall_time and step, which every event has.
std::string EventHead(double wall_time, int64_t step) {
  std::string event;
  PutTag(event, 1, Wire::kFixed64);
  PutFixed(event, std::bit_cast<uint64_t>(wall_time));
  PutInteger(event, 2, step);
  return event;
}

// The two events that a file begins with.
std::string Beginning(double wall_time, int64_t first_step) {
  std::string version = EventHead(wall_time, 0);
  PutBytes(version, 3, "brain.Event:2");
  std::string log;
  PutInteger(log, 1, 1);  // START
  std::string start = EventHead(wall_time, first_step);
  PutBytes(start, 7, log);
  return RecordFrame(version) + RecordFrame(start);
}

// One more than the largest that is there.
int64_t NextNumber(const std::filesystem::path& folder) {
  int64_t largest = 0;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    int64_t number = 0;
    if (name.starts_with(kPrefix)) {
      std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
      largest = std::max(largest, number);
    }
  }
  return largest + 1;
}

}  // namespace

std::string RecordFrame(std::string_view message) {
  const auto masked = [](std::string_view bytes) {
    return std::rotr(Crc32c(bytes), 15) + 0xa282ead8u;
  };
  std::string frame;
  PutFixed(frame, static_cast<uint64_t>(message.size()));
  PutFixed(frame, masked(frame));
  frame += message;
  PutFixed(frame, masked(message));
  return frame;
}

std::string ScalarEvent(double wall_time, int64_t step, const Scalars& scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    PutBytes(value, 1, tag);
    PutTag(value, 2, Wire::kFixed32);
    PutFixed(value, std::bit_cast<uint32_t>(static_cast<float>(number)));
    PutBytes(summary, 1, value);
  }
  std::string event = EventHead(wall_time, step);
  PutBytes(event, 5, summary);
  return event;
}

EventFile::EventFile(const std::filesystem::path& folder, int64_t first_step)
    : first_step_(first_step),
      start_wall_time_(
          std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
              .count()) {
  // Readers take the files in the order of their names: digits enough for that, and no time of day.
  char number[24];
  std::snprintf(number, sizeof(number), "%06lld", static_cast<long long>(NextNumber(folder)));
  path_ = folder / Concat(kPrefix, number);
}

double EventFile::WallTime() const {
  return start_wall_time_ +
         std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void EventFile::Add(int64_t step, const Scalars& scalars) {
  const double now = WallTime();
  std::string bytes = begun_ ? "" : Beginning(now, first_step_);
  bytes += RecordFrame(ScalarEvent(now, step, scalars));
  AppendToFile(path_, bytes);
  begun_ = true;
}

}  // namespace hkt::io
