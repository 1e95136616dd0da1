#include "hkt/report/pack.h"

#include "hkt/base/error.h"
#include "hkt/report/base64.h"

namespace hkt::report {
namespace {

void CheckBits(int bits) { Check(bits >= 1 && bits <= 16, "packed labels: ", bits, " bits each"); }

}  // namespace

int BitsFor(int64_t classes) {
  int bits = 1;
  while (bits < 16 && int64_t{1} << bits < classes) ++bits;
  return bits;
}

std::string PackLabels(const std::vector<int32_t>& labels, int bits) {
  CheckBits(bits);
  const auto width = static_cast<size_t>(bits);
  std::vector<uint8_t> bytes((labels.size() * width + 7) / 8);
  for (size_t i = 0; i < labels.size(); ++i) {
    Check(labels[i] >= 0 && labels[i] < 1 << bits, "label ", labels[i], " does not fit into ", bits,
          " bits");
    for (size_t k = 0; k < width; ++k) {
      const size_t at = i * width + k;
      const unsigned bit = static_cast<unsigned>(labels[i]) >> k & 1U;
      bytes[at / 8] = static_cast<uint8_t>(bytes[at / 8] | bit << at % 8);
    }
  }
  return EncodeBase64(bytes);
}

}  // namespace hkt::report
