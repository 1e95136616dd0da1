#include "hkt/base/config.h"

#include <cmath>
#include <type_traits>
#include <vector>

#include "hkt/base/error.h"
#include "hkt/base/text.h"

namespace hkt {
namespace {

bool IsChoice(std::string_view choices, std::string_view value) {
  for (size_t begin = 0; begin <= choices.size();) {
    const size_t end = std::min(choices.find('|', begin), choices.size());
    if (choices.substr(begin, end - begin) == value) return true;
    begin = end + 1;
  }
  return false;
}

std::string Range(const Limits& limits) {
  std::string text = Concat(limits.above_min ? "above " : "at least ", PlainNumber(limits.min));
  if (std::isfinite(limits.max)) text += Concat(" and at most ", PlainNumber(limits.max));
  return text;
}

std::string Plain(int64_t value) { return std::to_string(value); }
std::string Plain(double value) { return PlainNumber(value); }

class LimitChecker {
 public:
  template <class T>
  void operator()(std::string_view name, const T& value, std::string_view, const Limits& limits) {
    if constexpr (std::is_same_v<T, std::optional<int64_t>>) {
      if (value) (*this)(name, *value, {}, limits);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!limits.choices.empty() && !IsChoice(limits.choices, value)) {
        problems_.push_back(Concat(name, " is '", value, "', must be one of ", limits.choices));
      }
    } else if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
      const double x = static_cast<double>(value);
      const bool inside = std::isfinite(x) && x <= limits.max &&
                          (limits.above_min ? x > limits.min : x >= limits.min);
      if (!inside)
        problems_.push_back(Concat(name, " is ", Plain(value), ", must be ", Range(limits)));
    }
  }

  std::vector<std::string>& problems() { return problems_; }

 private:
  std::vector<std::string> problems_;
};

}  // namespace

void Resolve(Config& config) {
  LimitChecker check;
  Config::Visit(config, check);
  std::vector<std::string>& problems = check.problems();

  const bool images = config.data.task == "cifar10";
  const auto images_only = [&](const char* name, bool value) {
    if (value && !images) {
      problems.push_back(Concat(name, " is true, but task ", config.data.task,
                                " has no images; use task cifar10"));
    }
  };
  images_only("rgb", config.data.rgb);
  images_only("augment", config.train.augment);

  ModelConfig& m = config.model;
  const bool one_level = m.model.rfind("mha", 0) == 0;
  const bool gates = m.model == "hkt" || m.model == "mha-conv";
  if (one_level && m.levels.value_or(1) != 1) {
    problems.push_back(Concat("levels is ", *m.levels, ", but model ", m.model,
                              " has 1; use model hkt or hkt-fusion"));
  }
  // hkt without gates and hkt-fusion are the same thing; the other names say whether they have
  // gates.
  if (m.model != "hkt" && m.hybrid.value_or(gates) != gates) {
    problems.push_back(Concat("hybrid is ", *m.hybrid ? "true" : "false", ", but model ", m.model,
                              gates ? " has" : " has no", " gates; use model ",
                              one_level ? (gates ? "mha" : "mha-conv") : "hkt"));
  }
  if (!m.levels) m.levels = one_level ? 1 : 3;
  if (!m.hybrid) m.hybrid = gates;
  if (!m.kv_heads) m.kv_heads = m.heads;
  if (problems.empty()) {  // from here on the fields are in range
    if (m.d_model % m.heads != 0) {
      problems.push_back(
          Concat("d_model is ", m.d_model, ", must be a multiple of heads = ", m.heads));
    } else if (m.rotary && (m.d_model / m.heads) % 2 != 0) {
      problems.push_back(
          Concat("rotary needs an even head width; d_model / heads = ", m.d_model / m.heads));
    }
    const TrainConfig& t = config.train;
    if (t.overfit_batch && t.augment) {
      problems.push_back("overfit_batch trains on one batch as it is; leave augment out");
    }
    if (t.patience > 0 && t.eval_every == 0) {
      problems.push_back(
          Concat("patience is ", t.patience, ", which counts evaluations; set eval_every above 0"));
    }
    if (t.batch * t.accumulate > kMaxStepSamples) {
      problems.push_back(Concat("batch * accumulate is ", t.batch * t.accumulate,
                                " sequences a step, must be at most ", kMaxStepSamples));
    }
    if (m.heads % *m.kv_heads != 0) {
      problems.push_back(Concat("kv_heads is ", *m.kv_heads, ", must divide heads = ", m.heads));
    }
    const auto needs = [&](bool given, const std::string& what, bool there, const char* why) {
      if (given && !there) problems.push_back(Concat(what, ", but ", why, "; leave it out"));
    };
    const bool several = *m.levels > 1;
    const char* one = "the model has one level";
    needs(m.fusion != "learned", "fusion is " + m.fusion, several, one);
    needs(m.downsample != "conv", "downsample is " + m.downsample, several, one);
    needs(m.undecimated, "undecimated is true", several, one);
    needs(m.undecimated, "undecimated is true", m.downsample == "conv",
          "downsample pick leaves such levels nothing to do");
    needs(m.gate_start != ModelConfig().gate_start, Concat("gate_start is ", m.gate_start),
          *m.hybrid, "the model has no gates");
    if (m.psd && *m.kv_heads != m.heads) {
      problems.push_back(
          Concat("psd needs kv_heads = heads; kv_heads is ", *m.kv_heads, ", heads is ", m.heads));
    }
  }
  if (problems.empty()) return;
  std::string message = "configuration: ";
  for (size_t i = 0; i < problems.size(); ++i) message += (i ? "; " : "") + problems[i];
  throw UsageError(message);
}

}  // namespace hkt
