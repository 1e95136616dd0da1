// Records of CIFAR-10, with and without labels, in both forms.

#include "hkt/data/cifar10.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace cifar10 = hkt::data::cifar10;
  for (const bool rgb : {false, true}) {
    for (const auto parse : {cifar10::ParseRecords, cifar10::ParseImages}) {
      hkt::fuzz::Run(data, size, [&](std::string_view bytes) {
        const hkt::data::Dataset images = parse(bytes, "input", rgb);
        hkt::fuzz::Promise(images.size() > 0, "what is accepted holds an image");
        for (int64_t i = 0; i < images.size(); ++i) {
          hkt::fuzz::Promise(images.length(i) == cifar10::kSeqLen, "an image has 1024 steps");
          hkt::fuzz::Promise(images.labels[i] >= 0 && images.labels[i] < 10, "ten classes");
        }
        for (const uint16_t token : images.tokens)
          hkt::fuzz::Promise(rgb ? token < 256 : token >= 1 && token <= 256, "range of a step");
      });
    }
  }
  return 0;
}
