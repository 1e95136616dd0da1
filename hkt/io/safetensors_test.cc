#include "hkt/io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/io/file.h"

namespace hkt::io {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// What the Python package safetensors 0.8.0 writes (save(), with numpy arrays and metadata): the
// header and the data.
constexpr std::string_view kGoldenHeader =
    R"({"__metadata__":{"made by":"safetensors","zwei":"ä"},"a.i64":{"dtype":"I64","shape":)"
    R"([2],"data_offsets":[0,16]},"s.f64":{"dtype":"F64","shape":[],"data_offsets":[16,24]})"
    R"(,"b.f32":{"dtype":"F32","shape":[2,3],"data_offsets":[24,48]},"z.empty":{"dtype":"I3)"
    R"(2","shape":[0,4],"data_offsets":[48,48]},"e.f16":{"dtype":"F16","shape":[2],"data_of)"
    R"(fsets":[48,52]},"c.u8":{"dtype":"U8","shape":[3],"data_offsets":[52,55]},"d.bool":{")"
    R"(dtype":"BOOL","shape":[2],"data_offsets":[55,57]}} )";
constexpr char kGoldenData[] =
    "\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"
    "\x00\x00\x0a\x40\x00\x00\xc0\x3f\x00\x00\x00\xc0\x00\x00\x80\x3e\x00\x00\x40\x40"
    "\x00\x00\x80\x40\x00\x00\x00\x80\x00\x3c\x00\xb8\x00\xff\x07\x01\x00";

std::string Golden() {
  const uint64_t length = kGoldenHeader.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  return file + std::string(kGoldenHeader) + std::string(kGoldenData, sizeof(kGoldenData) - 1);
}

// A file with this header, however wrong.
std::string WithHeader(std::string_view header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string file(reinterpret_cast<const char*>(&length), sizeof(length));
  return file + std::string(header) + std::string(data_bytes, '\0');
}

template <class T>
std::vector<T> Values(const TensorView& view) {
  std::vector<T> values(view.data.size() / sizeof(T));
  std::memcpy(values.data(), view.data.data(), view.data.size());
  return values;
}

template <class T>
TensorView View(const std::vector<T>& values, Dtype dtype, std::vector<int64_t> shape) {
  return {dtype, std::move(shape), std::as_bytes(std::span(values))};
}

class SafetensorsTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  SafetensorsFile Parse(std::string_view content) const {
    return SafetensorsFile(path_, std::string(content));
  }

  const std::filesystem::path path_ =
      std::filesystem::path(::testing::TempDir()) / Concat("hkt_safetensors_test_", ::getpid());
};

TEST_F(SafetensorsTest, ReadsAFileOfTheOfficialPackage) {
  WriteFileAtomically(path_, Golden());
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.tensors().size(), 7u);
  EXPECT_EQ(file.at("b.f32").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(Values<float>(file.at("b.f32")), (std::vector<float>{1.5f, -2, 0.25f, 3, 4, -0.0f}));
  EXPECT_EQ(Values<int64_t>(file.at("a.i64")), (std::vector<int64_t>{-1, int64_t{1} << 40}));
  EXPECT_EQ(Values<uint8_t>(file.at("c.u8")), (std::vector<uint8_t>{0, 255, 7}));
  EXPECT_EQ(Values<uint8_t>(file.at("d.bool")), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(Values<uint16_t>(file.at("e.f16")), (std::vector<uint16_t>{0x3c00, 0xb800}));
  EXPECT_TRUE(file.at("s.f64").shape.empty());
  EXPECT_EQ(Values<double>(file.at("s.f64")), std::vector<double>{3.25});
  EXPECT_EQ(file.at("z.empty").shape, (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(file.Meta("zwei"), "ä");
  EXPECT_EQ(file.checksum(), "");
  EXPECT_THAT([&] { file.at("q"); }, ThrowsMessage<Error>(HasSubstr("no tensor q")));
  EXPECT_THAT([&] { file.Meta("q"); }, ThrowsMessage<Error>(HasSubstr("not written by hkt")));
}

TEST_F(SafetensorsTest, RoundTripOfEveryType) {
  const std::vector<double> doubles = {1, -0.0, 5e-324};
  const std::vector<float> floats = {1, 2, 3, 4, 5, 6};
  const std::vector<int32_t> ints = {-7};
  const std::vector<uint8_t> bytes = {1, 0, 255};
  const std::vector<uint16_t> halves = {0x3f80};
  const TensorViews tensors = {{"bytes", View(bytes, Dtype::kU8, {3})},
                               {"doubles", View(doubles, Dtype::kF64, {3, 1})},
                               {"empty", View(std::vector<float>{}, Dtype::kF32, {0})},
                               {"floats", View(floats, Dtype::kF32, {2, 3})},
                               {"halves", View(halves, Dtype::kBF16, {1})},
                               {"scalar", View(ints, Dtype::kI32, {})}};
  WriteSafetensors(path_, tensors, {{"key", "Grüße \"q\"\n"}});
  const std::string content = ReadFile(path_);
  uint64_t header = 0;
  std::memcpy(&header, content.data(), sizeof(header));
  EXPECT_EQ(header % 8, 0u);
  const SafetensorsFile file(path_);
  ASSERT_EQ(file.tensors().size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    const TensorView& read = file.at(name);
    EXPECT_EQ(Name(read.dtype), Name(tensor.dtype)) << name;
    EXPECT_EQ(read.shape, tensor.shape) << name;
    EXPECT_TRUE(
        std::equal(read.data.begin(), read.data.end(), tensor.data.begin(), tensor.data.end()))
        << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(read.data.data()) % Size(read.dtype), 0u)
        << name << " is not aligned";
  }
  EXPECT_EQ(file.Meta("key"), "Grüße \"q\"\n");
  EXPECT_THAT(file.checksum(), HasSubstr("xxh3-128:"));
}

TEST_F(SafetensorsTest, NoTensorsAtAll) {
  WriteSafetensors(path_, {}, {});
  EXPECT_TRUE(SafetensorsFile(path_).tensors().empty());
}

TEST_F(SafetensorsTest, WriterRefusesWhatItCouldNotRead) {
  const std::vector<float> values(4);
  WriteFileAtomically(path_, "old");
  EXPECT_THROW(WriteSafetensors(path_, {{"a", View(values, Dtype::kF32, {5})}}, {}), Error);
  EXPECT_THROW(WriteSafetensors(path_, {{"__metadata__", View(values, Dtype::kF32, {4})}}, {}),
               Error);
  EXPECT_THROW(WriteSafetensors(path_, {{"\xff", View(values, Dtype::kF32, {4})}}, {}), Error);
  EXPECT_EQ(ReadFile(path_), "old");
}

// Every cut and every flipped bit is an Error, or leaves every tensor as it was: nothing is damaged
// silently.
TEST_F(SafetensorsTest, NoDamageIsSilent) {
  const std::vector<float> floats = {1, 2, 3, 4};
  const std::vector<uint8_t> bytes = {7, 8, 9};
  WriteSafetensors(path_,
                   {{"a", View(floats, Dtype::kF32, {2, 2})}, {"b", View(bytes, Dtype::kU8, {3})}},
                   {{"k", "v"}});
  const std::string good = ReadFile(path_);
  for (size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_THROW(Parse(good.substr(0, cut)), Error) << "cut at " << cut;
  }
  EXPECT_THROW(Parse(good + "x"), Error);
  int accepted = 0;
  for (size_t i = 0; i < good.size() * 8; ++i) {
    std::string bad = good;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    try {
      const SafetensorsFile file = Parse(bad);
      ++accepted;
      ASSERT_EQ(file.tensors().size(), 2u) << "bit " << i;
      EXPECT_EQ(Values<float>(file.at("a")), floats) << "bit " << i;
      EXPECT_EQ(Values<uint8_t>(file.at("b")), bytes) << "bit " << i;
    } catch (const Error&) {
    }
  }
  // Only a flip in the key "hkt_checksum" itself, which makes it a file without a checksum.
  EXPECT_LE(accepted, 8 * 12);

  // A file that says that hkt wrote it is not taken without one.
  WriteSafetensors(path_, {{"a", View(floats, Dtype::kF32, {2, 2})}}, {{"hkt_version", "0.0.1"}});
  const std::string ours = ReadFile(path_);
  EXPECT_NO_THROW(Parse(ours));
  for (size_t i = 0; i < ours.size() * 8; ++i) {
    std::string bad = ours;
    bad[i / 8] = static_cast<char>(bad[i / 8] ^ (1 << (i % 8)));
    EXPECT_THROW(Parse(bad), Error) << "bit " << i;
  }
}

TEST_F(SafetensorsTest, DamageNeverCrashes) {
  Random random({1});
  for (int round = 0; round < 3000; ++round) {
    std::string bad = Golden();
    for (int flips = 0; flips < 4; ++flips) {
      const size_t at = random.Below(8 + kGoldenHeader.size());
      // Digits and brackets are what turns a header into another valid one.
      bad[at] = "0123456789[]{}\",:e-. \xff"[random.Below(23)];
    }
    try {
      Parse(bad);
    } catch (const Error&) {
    }
  }
}

TEST_F(SafetensorsTest, EachMalformedFileHasItsMessage) {
  const struct {
    std::string header;
    size_t data;
    const char* message;
  } kCases[] = {
      {R"({"a":)", 4, "not valid JSON"},
      {R"([1])", 0, "must be a JSON object"},
      {R"({"a":{"dtype":"F32","shape":[1]}})", 4, "must have dtype, shape and data_offsets"},
      {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype \"F33\""},
      {R"({"a":{"dtype":7,"shape":[1],"data_offsets":[0,4]}})", 4, "unknown dtype"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "in shape"},
      {R"({"a":{"dtype":"F32","shape":[1.5],"data_offsets":[0,4]}})", 4, "in shape"},
      {R"({"a":{"dtype":"F32","shape":"1","data_offsets":[0,4]}})", 4, "shape must be a list"},
      {R"({"a":{"dtype":"F32","shape":[9223372036854775807,4],"data_offsets":[0,4]}})", 4,
       "too large"},
      {R"({"a":{"dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,4]}})", 4,
       "in shape"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "shape and dtype need 8"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, "outside"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "outside"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "two integers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}})", 4, "two integers"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "belong to no tensor"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8,
       "4 bytes at the end belong to no tensor"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
       6, "overlap"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
       4, "stands there twice"},
      {R"({"__metadata__":{"k":1}})", 0, "must be text"},
      {R"({"__metadata__":[]})", 0, "must be an object"},
      {R"({"__metadata__":{"hkt_checksum":"xxh3-128:0"}})", 0, "checksum does not agree"},
      {R"({"a":[[[[[[[[[[[[[[1]]]]]]]]]]]]]]})", 0, "nested deeper"},
  };
  for (const auto& test : kCases) {
    EXPECT_THAT([&] { Parse(WithHeader(test.header, test.data)); },
                ThrowsMessage<Error>(AllOf(HasSubstr(path_.string()), HasSubstr(test.message))))
        << test.header;
  }
  EXPECT_THAT([&] { Parse("short"); }, ThrowsMessage<Error>(HasSubstr("too few")));
  EXPECT_THAT([&] { Parse(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)); },
              ThrowsMessage<Error>(HasSubstr("does not fit the file")));
  EXPECT_THAT([&] { Parse(std::string("\xf0\x00\x00\x00\x00\x00\x00\x00{}", 10)); },
              ThrowsMessage<Error>(HasSubstr("does not fit the file")));
  EXPECT_THAT([&] { SafetensorsFile file(path_.string() + "-none"); },
              ThrowsMessage<Error>(HasSubstr("-none")));
}

}  // namespace
}  // namespace hkt::io
