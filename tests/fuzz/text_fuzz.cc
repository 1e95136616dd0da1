// Labelled text: CSV, and lines with a tab.

#include "hkt/data/text.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const auto parse : {hkt::data::text::ParseCsv, hkt::data::text::ParseLines}) {
    hkt::fuzz::Run(data, size, [&](std::string_view content) {
      int64_t last = 0;
      parse(content, "input", [&](std::string_view label, std::string_view text, int64_t line) {
        hkt::fuzz::Promise(!label.empty(), "no label is empty");
        hkt::fuzz::Promise(label.size() + text.size() <= content.size(), "no text grows");
        hkt::fuzz::Promise(line > last, "lines go up");
        last = line;
      });
    });
  }
  return 0;
}
