#include "hkt/io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/io/checksum.h"
#include "hkt/io/config_json.h"
#include "hkt/io/file.h"
#include "hkt/io/json.h"

namespace hkt::io {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian; swap bytes here");

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  size_t size;
};

constexpr std::array<DtypeRow, 13> kDtypes = {{
    {Dtype::kBool, "BOOL", 1},
    {Dtype::kU8, "U8", 1},
    {Dtype::kI8, "I8", 1},
    {Dtype::kU16, "U16", 2},
    {Dtype::kI16, "I16", 2},
    {Dtype::kF16, "F16", 2},
    {Dtype::kBF16, "BF16", 2},
    {Dtype::kU32, "U32", 4},
    {Dtype::kI32, "I32", 4},
    {Dtype::kF32, "F32", 4},
    {Dtype::kU64, "U64", 8},
    {Dtype::kI64, "I64", 8},
    {Dtype::kF64, "F64", 8},
}};

const DtypeRow& Row(Dtype dtype) { return kDtypes[static_cast<size_t>(dtype)]; }

constexpr const char* kMetadataKey = "__metadata__";
constexpr const char* kChecksumKey = "hkt_checksum";
constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 8;
constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the reference implementation
constexpr int kMaxHeaderDepth = 8;            // root, entry and list need 3

// Bytes that a tensor of this shape takes; false when they do not fit 63 bits.
bool ByteCount(Dtype dtype, const std::vector<int64_t>& shape, uint64_t* bytes) {
  uint64_t count = Size(dtype);
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(count, static_cast<uint64_t>(size), &count))
      return false;
  }
  *bytes = count;
  return count <= static_cast<uint64_t>(INT64_MAX);
}

// Lengths go in beside texts, so that no two files can be told apart only by where a text ends.
std::string ChecksumOf(const TensorViews& tensors, const Metadata& metadata) {
  Xxh3Stream stream;
  const auto add = [&](std::string_view text) { stream.Update(Concat(text.size(), ":", text)); };
  for (const auto& [key, value] : metadata) {
    if (key == kChecksumKey) continue;
    add(key);
    add(value);
  }
  for (const auto& [name, tensor] : tensors) {
    add(name);
    add(Name(tensor.dtype));
    for (int64_t size : tensor.shape) stream.Update(Concat(size, ","));
    stream.Update(tensor.data);
  }
  return "xxh3-128:" + stream.Hex();
}

// Widest types first, so that every tensor is aligned to its own element; then by name.
std::vector<const TensorViews::value_type*> FileOrder(const TensorViews& tensors) {
  std::vector<const TensorViews::value_type*> order;
  for (const auto& entry : tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return Size(a->second.dtype) > Size(b->second.dtype);
  });
  return order;
}

struct Extent {
  uint64_t begin, end;
  std::string name;
};

// One entry of the header, checked against itself and against the size of the data.
TensorView ParseEntry(const std::string& where, const nlohmann::json& entry,
                      std::span<const std::byte> data, Extent* extent) {
  Check(entry.is_object() && entry.size() == 3 && entry.contains("dtype") &&
            entry.contains("shape") && entry.contains("data_offsets"),
        where, ": must have dtype, shape and data_offsets");
  TensorView view;
  const nlohmann::json& dtype = entry["dtype"];
  const auto row = std::find_if(kDtypes.begin(), kDtypes.end(), [&](const DtypeRow& candidate) {
    return dtype.is_string() && dtype.get_ref<const std::string&>() == candidate.name;
  });
  Check(row != kDtypes.end(), where, ": unknown dtype ", CompactJson(dtype));
  view.dtype = row->dtype;
  const nlohmann::json& shape = entry["shape"];
  Check(shape.is_array(), where, ": shape must be a list");
  for (const nlohmann::json& size : shape) {
    Check(size.is_number_unsigned() && size.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX),
          where, ": ", CompactJson(size), " in shape must be an integer from 0 on");
    view.shape.push_back(size.get<int64_t>());
  }
  uint64_t bytes = 0;
  Check(ByteCount(view.dtype, view.shape, &bytes), where, ": shape ", CompactJson(shape),
        " is too large");
  const nlohmann::json& offsets = entry["data_offsets"];
  Check(offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
            offsets[1].is_number_unsigned(),
        where, ": data_offsets must be two integers from 0 on");
  const auto begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  Check(begin <= end && end <= data.size(), where, ": data_offsets ", CompactJson(offsets),
        " are outside of the file's ", data.size(), " bytes of data; the file is cut or damaged");
  Check(end - begin == bytes, where, ": data_offsets hold ", end - begin,
        " bytes, shape and dtype need ", bytes);
  view.data = data.subspan(begin, end - begin);
  *extent = {begin, end, where};
  return view;
}

// The data must be covered once, without holes: both would hide bytes that nobody checks.
void CheckCovered(const std::string& file, std::vector<Extent> extents, uint64_t size) {
  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t at = 0;
  for (const Extent& extent : extents) {
    Check(extent.begin >= at, extent.name, ": its data overlap another tensor's");
    Check(extent.begin == at, extent.name, ": bytes before its data belong to no tensor");
    at = extent.end;
  }
  Check(at == size, file, ": ", size - at,
        " bytes at the end belong to no tensor; the file is damaged");
}

}  // namespace

std::string_view Name(Dtype dtype) { return Row(dtype).name; }
size_t Size(Dtype dtype) { return Row(dtype).size; }

void WriteSafetensors(const std::filesystem::path& path, const TensorViews& tensors,
                      const Metadata& metadata) {
  nlohmann::ordered_json header;
  header[kMetadataKey] = metadata;
  header[kMetadataKey][kChecksumKey] = ChecksumOf(tensors, metadata);
  const auto order = FileOrder(tensors);
  uint64_t offset = 0;
  for (const auto* entry : order) {
    const auto& [name, tensor] = *entry;
    Check(name != kMetadataKey, path.string(), ": a tensor cannot be named ", kMetadataKey);
    uint64_t bytes = 0;
    Check(ByteCount(tensor.dtype, tensor.shape, &bytes) && bytes == tensor.data.size(),
          path.string(), ": tensor ", name, " has ", tensor.data.size(),
          " bytes, its shape says otherwise");
    header[name] = {{"dtype", Name(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    Fail(path.string(), ": a name or a piece of metadata is not UTF-8");
  }
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const uint64_t length = text.size();
  std::array<char, kLengthBytes> prefix;
  std::memcpy(prefix.data(), &length, prefix.size());

  AtomicFile file(path);
  file.Write(std::string_view(prefix.data(), prefix.size()));
  file.Write(text);
  for (const auto* entry : order) file.Write(entry->second.data);
  file.Commit();
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : SafetensorsFile(path, ReadFile(path)) {}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path, std::string content)
    : path_(path), content_(std::move(content)) {
  const std::string file = path_.string();
  Check(content_.size() >= kLengthBytes, file, ": ", content_.size(),
        " bytes are too few for a safetensors file");
  uint64_t length = 0;
  std::memcpy(&length, content_.data(), sizeof(length));
  Check(length <= kMaxHeader && length <= content_.size() - kLengthBytes, file, ": a header of ",
        length, " bytes does not fit the file of ", content_.size(),
        "; it is cut, damaged, or no safetensors file");
  const auto header = ParseJson<nlohmann::json>(
      std::string_view(content_).substr(kLengthBytes, length), file + ", header", kMaxHeaderDepth);
  Check(header.is_object(), file, ", header: must be a JSON object");
  const auto data = std::as_bytes(std::span(content_)).subspan(kLengthBytes + length);
  std::vector<Extent> extents;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadataKey) {
      Check(entry.is_object(), file, ": ", kMetadataKey, " must be an object");
      for (const auto& [key, value] : entry.items()) {
        Check(value.is_string(), file, ": ", kMetadataKey, " '", Printable(key), "' must be text");
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    tensors_[name] = ParseEntry(Concat(file, ", tensor ", Printable(name)), entry, data,
                                &extents.emplace_back());
  }
  CheckCovered(file, std::move(extents), data.size());
  // Ours always have one: its key itself is damaged.
  Check(!checksum().empty() || !metadata_.contains(kVersionKey), file,
        ": was written by hkt and has no checksum, so the file is damaged; use a copy of it, or "
        "train again");
  Check(checksum().empty() || checksum() == ChecksumOf(tensors_, metadata_), file,
        ": the checksum does not agree, so the file is damaged; use a copy of it, or train again");
}

const TensorView& SafetensorsFile::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  Check(found != tensors_.end(), path_.string(), ": has no tensor ", name);
  return found->second;
}

const std::string& SafetensorsFile::Meta(const std::string& key) const {
  const auto found = metadata_.find(key);
  Check(found != metadata_.end(), path_.string(), ": has no '", key,
        "' in its metadata; it was not written by hkt");
  return found->second;
}

std::string SafetensorsFile::checksum() const {
  const auto found = metadata_.find(kChecksumKey);
  return found == metadata_.end() ? "" : found->second;
}

}  // namespace hkt::io
