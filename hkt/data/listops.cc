#include "hkt/data/listops.h"

#include <algorithm>
#include <array>

#include "hkt/base/error.h"
#include "hkt/base/text.h"

namespace hkt::data::listops {
namespace {

constexpr std::array<std::string_view, kVocabulary> kText = {
    "<pad>", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};

constexpr std::string_view kBlanks = " \t\r\n";

bool IsDigit(uint16_t token) { return token >= kDigit && token < kMin; }
bool IsOperator(uint16_t token) { return token >= kMin && token <= kSm; }

}  // namespace

std::vector<uint16_t> Parse(std::string_view text) {
  std::vector<uint16_t> tokens;
  for (size_t begin = text.find_first_not_of(kBlanks); begin != text.npos;) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const auto found = std::find(kText.begin() + kDigit, kText.end(), word);
    Check(found != kText.end(), "token ", tokens.size() + 1, " is '", Printable(word),
          "', must be a digit 0 ... 9, [MIN, [MAX, [MED, [SM or ], with blanks between tokens");
    tokens.push_back(static_cast<uint16_t>(found - kText.begin()));
    begin = text.find_first_not_of(kBlanks, end);
  }
  Evaluate(tokens);
  return tokens;
}

std::string Text(Tokens tokens) {
  std::string text;
  text.reserve(tokens.size() * 2 + tokens.size() / 2);
  for (uint16_t token : tokens) {
    if (!text.empty()) text += ' ';
    text += kText.at(token);
  }
  return text;
}

int32_t Apply(uint16_t op, std::span<int32_t> values) {
  switch (op) {
    case kMin:
      return *std::min_element(values.begin(), values.end());
    case kMax:
      return *std::max_element(values.begin(), values.end());
    case kMed: {
      std::sort(values.begin(), values.end());
      const size_t n = values.size();
      return (values[(n - 1) / 2] + values[n / 2]) / 2;  // truncated
    }
    case kSm: {
      int64_t sum = 0;
      for (int32_t value : values) sum += value;
      return static_cast<int32_t>(sum % 10);
    }
    default:
      Fail("token id ", op, " is no operator");
  }
}

int32_t Evaluate(Tokens tokens) {
  struct Open {
    uint16_t op;
    size_t first_value;
  };
  std::vector<Open> open;
  std::vector<int32_t> values;
  Check(!tokens.empty(),
        "an empty text is no expression; a ListOps expression is a digit or [OP argument ... ]");
  for (size_t i = 0; i < tokens.size(); ++i) {
    const uint16_t token = tokens[i];
    Check(i == 0 || !open.empty(), "token ", i + 1, ": the expression ends before it");
    if (IsDigit(token)) {
      values.push_back(token - kDigit);
    } else if (IsOperator(token)) {
      open.push_back({token, values.size()});
    } else {
      Check(token == kClose, "token ", i + 1, ": id ", token, " is no ListOps token (1 ... 15)");
      Check(!open.empty(), "token ", i + 1, ": a closing bracket that nothing opened");
      const Open top = open.back();
      open.pop_back();
      Check(values.size() > top.first_value, "token ", i + 1, ": ", kText[top.op],
            " has no argument");
      const int32_t value = Apply(top.op, std::span(values).subspan(top.first_value));
      values.resize(top.first_value);
      values.push_back(value);
    }
  }
  Check(open.empty(), "the expression ends with ", open.size(), " of its brackets open");
  return values.front();
}

int Depth(Tokens tokens) {
  int depth = 0, deepest = 0;
  for (uint16_t token : tokens) {
    if (token == kClose) {
      --depth;
    } else {
      deepest = std::max(deepest, depth + 1);
      depth += IsOperator(token);
    }
  }
  return deepest;
}

std::string_view RootOperator(Tokens tokens) {
  return tokens.empty() || !IsOperator(tokens[0]) ? "none" : kText[tokens[0]].substr(1);
}

}  // namespace hkt::data::listops
