#include "hkt/io/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "hkt/base/error.h"
#include "hkt/io/checksum.h"
#include "hkt/io/file.h"

namespace hkt::io {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Crc32cTest, VectorsOfRfc3720) {
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  std::string rising, falling;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i), falling += static_cast<char>(31 - i);
  EXPECT_EQ(Crc32c(rising), 0x46DD794Eu);
  EXPECT_EQ(Crc32c(falling), 0x113FDB5Cu);
  EXPECT_EQ(Crc32c(""), 0u);
}

template <class T>
T Take(std::string_view& bytes) {
  T value{};
  EXPECT_GE(bytes.size(), sizeof(T));
  std::memcpy(&value, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return value;
}

uint64_t TakeVarint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = Take<uint8_t>(bytes);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

// A field of any message: number and content; numbers as 8 bytes.
struct Field {
  uint64_t number;
  std::string content;
};

std::vector<Field> Fields(std::string_view message) {
  std::vector<Field> fields;
  while (!message.empty()) {
    const uint64_t tag = TakeVarint(message);
    Field& field = fields.emplace_back(Field{tag >> 3, ""});
    size_t size = 0;
    uint64_t varint = 0;
    switch (tag & 7) {
      case 0:
        varint = TakeVarint(message);
        field.content.assign(reinterpret_cast<const char*>(&varint), sizeof(varint));
        continue;
      case 1:
        size = 8;
        break;
      case 2:
        size = TakeVarint(message);
        break;
      case 5:
        size = 4;
        break;
      default:
        ADD_FAILURE() << "wire type " << (tag & 7);
        return fields;
    }
    EXPECT_LE(size, message.size());
    field.content = message.substr(0, size);
    message.remove_prefix(size);
  }
  return fields;
}

template <class T>
T As(const Field& field) {
  std::string_view content = field.content;
  return Take<T>(content);
}

struct Event {
  double wall_time = 0;
  int64_t step = 0;
  std::string version;
  std::optional<uint64_t> session_status;
  std::vector<std::pair<std::string, float>> scalars;
};

// Frame by frame, both checksums held against the bytes.
std::vector<Event> ReadEvents(const std::filesystem::path& path) {
  const std::string content = ReadFile(path);
  std::string_view rest = content;
  const auto unmask = [](uint32_t masked) {
    const uint32_t rotated = masked - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
  };
  std::vector<Event> events;
  while (!rest.empty()) {
    const std::string_view length_bytes = rest.substr(0, 8);
    const auto length = Take<uint64_t>(rest);
    EXPECT_EQ(unmask(Take<uint32_t>(rest)), Crc32c(length_bytes));
    const std::string_view message = rest.substr(0, length);
    rest.remove_prefix(length);
    EXPECT_EQ(unmask(Take<uint32_t>(rest)), Crc32c(message));
    Event& event = events.emplace_back();
    for (const Field& field : Fields(message)) {
      if (field.number == 1) event.wall_time = As<double>(field);
      if (field.number == 2) event.step = As<int64_t>(field);
      if (field.number == 3) event.version = field.content;
      if (field.number == 7) event.session_status = As<uint64_t>(Fields(field.content).at(0));
      if (field.number != 5) continue;
      for (const Field& value : Fields(field.content)) {
        const auto parts = Fields(value.content);
        event.scalars.emplace_back(parts.at(0).content, As<float>(parts.at(1)));
      }
    }
  }
  return events;
}

class EventFileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / Concat("hkt_event_file_test_", ::getpid());
};

TEST_F(EventFileTest, ReadsBackWhatWasWritten) {
  EventFile file(folder_, 1);
  EXPECT_FALSE(std::filesystem::exists(file.path()));
  file.Add(20, {{"train/loss", 2.5}, {"train/learning_rate", 1e-3}});
  file.Add(5'000'000'000, {{std::string(300, 'x'), -1}});
  const auto events = ReadEvents(file.path());
  ASSERT_EQ(events.size(), 4u);
  EXPECT_EQ(events[0].version, "brain.Event:2");
  EXPECT_EQ(events[1].session_status, std::optional<uint64_t>(1));
  EXPECT_EQ(events[1].step, 1);
  EXPECT_EQ(events[2].step, 20);
  EXPECT_THAT(events[2].scalars,
              ElementsAre(Pair("train/loss", 2.5f), Pair("train/learning_rate", 1e-3f)));
  EXPECT_EQ(events[3].step, 5'000'000'000);
  EXPECT_THAT(events[3].scalars, ElementsAre(Pair(std::string(300, 'x'), -1.0f)));
  EXPECT_GT(events[2].wall_time, 1.6e9);
  EXPECT_GE(events[3].wall_time, events[2].wall_time);
}

TEST_F(EventFileTest, EverySessionHasItsOwnFileAndSaysFromWhereItCounts) {
  EventFile(folder_, 1).Add(3, {{"a", 1}});
  WriteFileAtomically(folder_ / "events.out.tfevents.other", "of another program");
  EventFile(folder_, 9);  // wrote nothing: leaves no file
  EventFile second(folder_, 3);
  second.Add(3, {{"a", 2}});
  EXPECT_EQ(second.path().filename(), "events.out.tfevents.000002");
  EXPECT_EQ(ReadEvents(second.path())[1].step, 3);
  EXPECT_EQ(ReadEvents(folder_ / "events.out.tfevents.000001").size(), 3u);
}

}  // namespace
}  // namespace hkt::io
