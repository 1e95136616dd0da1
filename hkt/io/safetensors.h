#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// The safetensors format (github.com/huggingface/safetensors): 8 bytes of header length N,
// little-endian; N bytes of JSON
// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, …, "__metadata__":
// {text: text}}; the data. Every file that we write carries a checksum of its names, types, shapes,
// data and metadata in __metadata__.

namespace hkt::io {

enum class Dtype { kBool, kU8, kI8, kU16, kI16, kF16, kBF16, kU32, kI32, kF32, kU64, kI64, kF64 };

std::string_view Name(Dtype dtype);  // "F32"
size_t Size(Dtype dtype);            // bytes an element

// A tensor in somebody else's memory: contiguous, row-major, little-endian, not necessarily
// aligned.
struct TensorView {
  Dtype dtype = Dtype::kF32;
  std::vector<int64_t> shape;  // empty: a scalar
  std::span<const std::byte> data;
};

using TensorViews = std::map<std::string, TensorView>;
using Metadata = std::map<std::string, std::string>;

// Replaces `path` atomically. Throws Error when the data of a tensor is not as long as its shape
// says, a name is
// "__metadata__", a name or metadata is not UTF-8, or writing fails.
void WriteSafetensors(const std::filesystem::path& path, const TensorViews& tensors,
                      const Metadata& metadata);

// A file in memory. Throws Error, naming the file and what is wrong, for everything that is not a
// whole, well-formed file; a checksum of ours must agree, a file without one is accepted.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& path);
  // The same of bytes in memory; `path` is for messages.
  SafetensorsFile(const std::filesystem::path& path, std::string content);
  SafetensorsFile(const SafetensorsFile&) = delete;  // the views point into it
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const TensorViews& tensors() const { return tensors_; }
  const Metadata& metadata() const { return metadata_; }

  // Throws Error when there is no such tensor.
  const TensorView& at(const std::string& name) const;
  // Throws Error when there is no such entry.
  const std::string& Meta(const std::string& key) const;
  // The checksum, empty in files of other programs.
  std::string checksum() const;

 private:
  std::filesystem::path path_;
  std::string content_;
  TensorViews tensors_;
  Metadata metadata_;
};

}  // namespace hkt::io
