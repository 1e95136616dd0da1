// The ListOps parser, and what is computed of what it accepts.

#include "hkt/data/listops.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace listops = hkt::data::listops;
  return hkt::fuzz::Run(data, size, [](std::string_view text) {
    const std::vector<uint16_t> tokens = listops::Parse(text);
    hkt::fuzz::Promise(listops::Parse(listops::Text(tokens)) == tokens, "text and back");
    const int32_t value = listops::Evaluate(tokens);
    hkt::fuzz::Promise(value >= 0 && value < listops::kClasses, "a value is a digit");
    hkt::fuzz::Promise(listops::Depth(tokens) >= 1, "an expression has a depth");
    listops::RootOperator(tokens);
  });
}
