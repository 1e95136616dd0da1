// Configuration files.

#include "hkt/io/config_json.h"
#include "hkt/io/json.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return hkt::fuzz::Run(data, size, [](std::string_view text) {
    hkt::Config config;
    hkt::io::FromJson(hkt::io::ParseJson<nlohmann::ordered_json>(std::string(text), "input"),
                      config, "input");
    hkt::Resolve(config);
    hkt::Config again;
    hkt::io::FromJson(hkt::io::ToJson(config), again);
    hkt::fuzz::Promise(hkt::io::ToJson(again) == hkt::io::ToJson(config), "to JSON and back");
  });
}
