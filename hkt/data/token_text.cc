#include "hkt/data/token_text.h"

#include <span>

#include "hkt/data/listops.h"

namespace hkt::data {

std::string TokenText(std::string_view task, uint16_t id) {
  if (id == 0) return "";
  if (task == "listops") return listops::Text({&id, 1});
  if (task != "imdb" && task != "text") return std::to_string(id);
  constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned>(id - 1);
  if (byte >= 32 && byte < 127) return std::string(1, static_cast<char>(byte));
  return {'\\', 'x', kDigits[byte / 16 % 16], kDigits[byte % 16]};
}

}  // namespace hkt::data
