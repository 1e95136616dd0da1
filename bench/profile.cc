#include "bench/profile.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

namespace hkt::bench {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

constexpr const char* kRest = "rest";

const char* PartOf(std::string_view name) {
  const auto any_of = [&](std::initializer_list<std::string_view> parts) {
    return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
      return name.find(part) != std::string_view::npos;
    });
  };
  if (name.starts_with("autograd::engine")) return kRest;
  if (any_of({"hkt::attention", "scaled_dot_product"})) return "attention";
  if (any_of({"aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm"})) return "products";
  if (any_of({"aten::gelu"})) return "gelu";
  return kRest;
}

// Of this thread, while ProfileCalls runs.
struct Recorder {
  struct Open {
    Clock::time_point start;
    const char* part;
    double inside = 0;  // seconds of the operators that it called
  };
  std::vector<Open> open;
  std::map<std::pair<std::string, std::string>, OperatorTime> times;  // by name and part
};
thread_local Recorder* recorder = nullptr;

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& function) {
  const char* part = PartOf(function.name());
  if (!recorder->open.empty() && recorder->open.back().part != kRest)
    part = recorder->open.back().part;
  recorder->open.push_back({Clock::now(), part});
  return nullptr;
}

void OnEnd(const at::RecordFunction& function, at::ObserverContext*) {
  const double took = Seconds(Clock::now() - recorder->open.back().start);
  OperatorTime& time = recorder->times[{function.name(), recorder->open.back().part}];
  time.seconds += took - recorder->open.back().inside;
  time.calls += 1;
  recorder->open.pop_back();
  if (!recorder->open.empty()) recorder->open.back().inside += took;
}

class Recording {
 public:
  explicit Recording(Recorder& target) {
    recorder = &target;
    handle_ =
        at::addThreadLocalCallback(at::RecordFunctionCallback(OnStart, OnEnd).needsInputs(false));
  }
  ~Recording() {
    at::removeCallback(handle_);
    recorder = nullptr;
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  at::CallbackHandle handle_;
};

}  // namespace

Profile ProfileCalls(const std::function<void()>& call, int64_t calls) {
  Recorder times;
  const Clock::time_point start = Clock::now();
  {
    const Recording recording(times);
    for (int64_t i = 0; i < calls; ++i) call();
  }
  Profile profile;
  profile.seconds = Seconds(Clock::now() - start) / static_cast<double>(calls);
  for (auto& [key, time] : times.times) {
    profile.operators.push_back({key.first, key.second, time.seconds / static_cast<double>(calls),
                                 time.calls / static_cast<double>(calls)});
  }
  std::sort(profile.operators.begin(), profile.operators.end(),
            [](const OperatorTime& a, const OperatorTime& b) { return a.seconds > b.seconds; });
  return profile;
}

nlohmann::ordered_json ToJson(const Profile& profile) {
  nlohmann::ordered_json json = {{"seconds", profile.seconds},
                                 {"parts", nlohmann::ordered_json::object()}};
  for (const char* part : {"attention", "products", "gelu", kRest}) json["parts"][part] = 0.0;
  double accounted = 0;
  const auto add = [&](const OperatorTime& time) {
    const double share = time.seconds / profile.seconds;
    json["parts"][time.part] = json["parts"][time.part].get<double>() + share;
    json["operators"].push_back({{"name", time.name},
                                 {"part", time.part},
                                 {"seconds", time.seconds},
                                 {"share", share},
                                 {"calls", time.calls}});
  };
  for (const OperatorTime& time : profile.operators) {
    accounted += time.seconds;
    add(time);
  }
  add({.name = "(between)", .part = kRest, .seconds = profile.seconds - accounted, .calls = 1});
  return json;
}

}  // namespace hkt::bench
