#include "hkt/data/token_text.h"

#include "hkt/data/listops.h"

namespace hkt::data {
namespace {

std::string ByteText(unsigned byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  if (byte >= 32 && byte < 127) return std::string(1, static_cast<char>(byte));
  return {'\\', 'x', kDigits[byte / 16 % 16], kDigits[byte % 16]};
}

}  // namespace

std::string StepText(std::string_view task, std::span<const uint16_t> step) {
  if (step.size() > 1) {  // values, no ids
    std::string text;
    for (const uint16_t value : step) text += (text.empty() ? "" : ",") + std::to_string(value);
    return text;
  }
  const uint16_t id = step.front();
  if (id == 0) return "";
  if (task == "listops") return listops::Text(step);
  if (task == "imdb" || task == "text") return ByteText(static_cast<unsigned>(id - 1));
  return std::to_string(task == "cifar10" ? id - 1 : id);
}

}  // namespace hkt::data
