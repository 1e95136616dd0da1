// Files of tensors.

#include "hkt/io/safetensors.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return hkt::fuzz::Run(data, size, [](std::string_view bytes) {
    const hkt::io::SafetensorsFile file("input", std::string(bytes));
    for (const auto& [name, tensor] : file.tensors()) {
      size_t expected = Size(tensor.dtype);
      for (const int64_t n : tensor.shape) expected *= static_cast<size_t>(n);
      hkt::fuzz::Promise(tensor.data.size() == expected, "data as long as the shape says");
      unsigned sum = 0;  // reads every byte
      for (const std::byte byte : tensor.data) sum += static_cast<unsigned>(byte);
      hkt::fuzz::Promise(sum <= 255 * tensor.data.size(), "bytes");
    }
  });
}
