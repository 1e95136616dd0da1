#include "hkt/data/listops_ladder.h"

#include <algorithm>
#include <optional>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/base/status.h"
#include "hkt/data/streams.h"

namespace hkt::data::listops {
namespace {

// Values of each depth to draw from: the shares of ten values are then right to half a per cent.
constexpr int64_t kPool = 20000;

using Histogram = std::array<int64_t, kClasses>;

int32_t Mode(const Histogram& counts) {
  return static_cast<int32_t>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

// MIN MAX MED SM as 0 ... 3; 4 where the root is a digit.
size_t RootIndex(Tokens tokens) {
  return tokens[0] >= kMin && tokens[0] <= kSm ? static_cast<size_t>(tokens[0] - kMin) : 4;
}

// An expression of which only the top is known, ready to be evaluated many times: what is known
// wholly is folded into its value.
class Top {
 public:
  Top(Tokens tokens, int known_depth) : tokens_(tokens) {
    Node node = Read(1, known_depth);
    Emit(node);
  }

  // Of unknown parts there are none: the value is always the same.
  bool known() const { return unknown_ == 0; }

  // `draw` gives the value of an unknown part.
  template <class Draw>
  int32_t Evaluate(Draw&& draw) {
    values_.clear();
    starts_.clear();
    for (const Step& step : steps_) {
      switch (step.kind) {
        case Kind::kValue:
          values_.push_back(step.value);
          break;
        case Kind::kDraw:
          values_.push_back(draw());
          break;
        case Kind::kOpen:
          starts_.push_back(values_.size());
          break;
        case Kind::kApply: {
          const size_t first = starts_.back();
          starts_.pop_back();
          const int32_t value =
              Apply(static_cast<uint16_t>(step.value), std::span(values_).subspan(first));
          values_.resize(first);
          values_.push_back(value);
          break;
        }
      }
    }
    return values_.front();
  }

 private:
  enum class Kind { kValue, kDraw, kOpen, kApply };
  struct Step {
    Kind kind;
    int32_t value;
  };
  struct Node {
    std::optional<int32_t> value;  // where it is known
    uint16_t op = 0;               // 0: unknown as a whole
    std::vector<Node> arguments;
  };

  Node Read(int depth, int known_depth) {
    Check(at_ < tokens_.size(), "the expression ends too early");
    const uint16_t token = tokens_[at_++];
    if (token >= kDigit && token < kMin) return {token - kDigit, 0, {}};
    Check(token >= kMin && token <= kSm, "token id ", token,
          " where an operator or a digit is due");
    Node node{std::nullopt, token, {}};
    std::vector<int32_t> values;
    while (at_ < tokens_.size() && tokens_[at_] != kClose) {
      node.arguments.push_back(Read(depth + 1, known_depth));
      if (node.arguments.back().value) values.push_back(*node.arguments.back().value);
    }
    Check(at_++ < tokens_.size() && !node.arguments.empty(), "an operator without its end");
    if (depth > known_depth) return {};
    if (values.size() == node.arguments.size()) return {Apply(token, values), token, {}};
    return node;
  }

  void Emit(const Node& node) {
    if (node.value) {
      steps_.push_back({Kind::kValue, *node.value});
    } else if (node.op == 0) {
      steps_.push_back({Kind::kDraw, 0});
      ++unknown_;
    } else {
      steps_.push_back({Kind::kOpen, 0});
      for (const Node& argument : node.arguments) Emit(argument);
      steps_.push_back({Kind::kApply, node.op});
    }
  }

  Tokens tokens_;
  size_t at_ = 0;
  int64_t unknown_ = 0;
  std::vector<Step> steps_;
  std::vector<int32_t> values_;
  std::vector<size_t> starts_;
};

template <class Predict>
Rung MakeRung(std::string name, const Dataset& examples, Predict&& predict) {
  Rung rung{std::move(name), 0, {}};
  std::array<int64_t, 5> right{}, all{};
  for (int64_t i = 0; i < examples.size(); ++i) {
    const size_t root = RootIndex(examples.sequence(i));
    ++all[root];
    right[root] += predict(i) == examples.labels[i];
  }
  int64_t sum = 0;
  for (int64_t count : right) sum += count;
  rung.accuracy = static_cast<double>(sum) / static_cast<double>(examples.size());
  for (size_t op = 0; op < rung.by_operator.size(); ++op) {
    if (all[op] > 0)
      rung.by_operator[op] = static_cast<double>(right[op]) / static_cast<double>(all[op]);
  }
  return rung;
}

}  // namespace

Ladder ComputeLadder(const Preset& preset, const Dataset& train, const Dataset& examples,
                     uint64_t seed) {
  Check(train.size() > 0 && examples.size() > 0,
        "a ladder needs examples to learn from and to try");
  std::array<Histogram, 5> labels{};  // by root
  Histogram all{};
  for (int64_t i = 0; i < train.size(); ++i) {
    const int32_t label = train.labels[i];
    ++all.at(static_cast<size_t>(label));
    ++labels[RootIndex(train.sequence(i))][static_cast<size_t>(label)];
  }
  Ladder ladder;
  ladder.examples = examples.size();
  for (int64_t i = 0; i < examples.size(); ++i) {
    const size_t root = RootIndex(examples.sequence(i));
    if (root < ladder.operators.size()) ++ladder.operators[root];
  }
  ladder.rungs.push_back(MakeRung("majority", examples, [&](int64_t) { return Mode(all); }));
  ladder.rungs.push_back(MakeRung("root_operator", examples, [&](int64_t i) {
    return Mode(labels[RootIndex(examples.sequence(i))]);
  }));

  StatusLine status("drawing what lies below the known top");
  for (int depth = 1; depth < preset.max_depth; ++depth) {
    const std::vector<int32_t> pool = depth + 1 < preset.max_depth
                                          ? OperatorValues(preset, depth + 1, kPool, seed)
                                          : std::vector<int32_t>();
    Random random({seed, kLadderStream, 1u << 16, static_cast<uint64_t>(depth)});
    ladder.rungs.push_back(MakeRung(Concat("depth_", depth), examples, [&](int64_t i) {
      status.Update((depth - 1 + static_cast<double>(i) / static_cast<double>(examples.size())) /
                    (preset.max_depth - 1));
      Top top(examples.sequence(i), depth);
      Check(top.known() || !pool.empty(), "example ", i + 1, " is deeper than preset ", preset.name,
            " allows");
      const auto draw = [&] { return pool[random.Below(pool.size())]; };
      if (top.known()) return top.Evaluate(draw);
      Histogram values{};
      for (int64_t n = 0; n < kLadderDraws; ++n)
        ++values.at(static_cast<size_t>(top.Evaluate(draw)));
      return Mode(values);
    }));
  }
  return ladder;
}

}  // namespace hkt::data::listops
