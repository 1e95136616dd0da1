// hkt data multiscale: the synthetic target on several scales and the error decomposition on it.

#include "cli/data_multiscale.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "cli/output.h"
#include "cli/table.h"
#include "hkt/analysis/multiscale.h"
#include "hkt/analysis/pyramid_target.h"
#include "hkt/base/error.h"
#include "hkt/base/text.h"
#include "hkt/data/multiscale.h"

namespace hkt::cli {
namespace {

using analysis::MultiscaleReport;
using analysis::MultiscaleRow;

struct MultiscaleState {
  data::MultiscaleOptions options;
  std::optional<double> kappa;
  std::string out;
  bool json = false;
};

void PrintTwoTokens(const char* title, const MultiscaleReport& report) {
  std::printf("\n%s\n", title);
  std::printf("%3s  %21s  %21s  %21s  %10s  %8s\n", "L", "E_H    closed form", "E_Q    closed form",
              "E_O    closed form", "tail bound", "identity");
  for (const MultiscaleRow& row : report.rows) {
    std::printf("%3lld  %10.5f %10.5f  %10.5f %10.5f  %10.5f %10.5f  %10.5f  %8.0e\n",
                static_cast<long long>(row.levels), row.hierarchical, row.hierarchical_closed,
                row.quantisation, row.quantisation_closed, row.optimisation,
                row.optimisation_closed, row.tail_bound, row.gap);
  }
  std::printf("mean slope of log sqrt(E_H) on L: %s, closed form %s\n",
              Number(report.log_slope, "%.4f").c_str(),
              Number(report.log_slope_closed, "%.4f").c_str());
}

void PrintOneToken(const MultiscaleReport& gaussian, const MultiscaleReport& heavy) {
  std::printf("\none token in place of two: E_H is multiplied by 1 + gamma, its slope stays\n");
  std::printf("%3s  %21s  %21s  %8s\n", "L", "Gaussian  closed form", "heavy     closed form",
              "ratio");
  for (size_t i = 0; i + 1 < gaussian.rows.size(); ++i) {
    const MultiscaleRow &a = gaussian.rows[i], &b = heavy.rows[i];
    std::printf("%3lld  %10.5f %10.5f  %10.5f %10.5f  %8.3f\n", static_cast<long long>(a.levels),
                a.hierarchical, a.hierarchical_closed, b.hierarchical, b.hierarchical_closed,
                b.hierarchical / a.hierarchical);
  }
  std::printf("slopes %s and %s\n", Number(gaussian.log_slope, "%.4f").c_str(),
              Number(heavy.log_slope, "%.4f").c_str());
}

void PrintPyramid(const analysis::HeadTruncations& head) {
  std::printf(
      "\na pyramid of convolutions, LayerNorm and GELU with random weights, terms of sizes "
      "rho^l\n");
  std::printf("%3s  %10s  %10s  %10s  %10s  %10s  %8s\n", "L", "E_H", "E_Q", "E_O", "total",
              "tail bound", "identity");
  const Json document = ToJson(head);
  for (size_t i = 0; i < head.truncations.size(); ++i) {
    const analysis::Truncation& t = head.truncations[i];
    std::printf("%3lld  %10.5f  %10.5f  %10.5f  %10.5f  %10.5f  %8s\n",
                static_cast<long long>(t.levels), t.terms.hierarchical, t.terms.quantisation,
                t.terms.optimisation, t.terms.total, t.tail_bound,
                Number(document["rows"][i]["gap"], "%.0e").c_str());
  }
}

void Run(const MultiscaleState& state) {
  data::MultiscaleOptions options = state.options;
  data::MultiscaleOptions heavy = options;
  heavy.kappa = state.kappa.value_or(2 * static_cast<double>(options.d * (options.d + 2)));
  data::CheckOptions(heavy);
  const auto measure = [](data::MultiscaleOptions o, bool same_token) {
    o.same_token = same_token;
    return analysis::MeasureMultiscale(data::MakeMultiscale(o));
  };
  const MultiscaleReport two = measure(options, false), two_heavy = measure(heavy, false);
  const MultiscaleReport one = measure(options, true), one_heavy = measure(heavy, true);
  // Longer pyramids need longer sequences; five levels of 32 tokens show what is to be seen.
  const analysis::HeadTruncations pyramid =
      analysis::MeasurePyramidTarget({.levels = std::min<int64_t>(options.levels, 5),
                                      .stride = options.stride,
                                      .rho = options.rho,
                                      .d = options.d,
                                      .seed = options.seed});
  if (!state.out.empty()) {
    data::MultiscaleOptions kept = state.kappa ? heavy : options;
    kept.keep_tokens = true;
    data::WriteMultiscale(state.out, data::MakeMultiscale(kept));
  }
  if (state.json) {
    return PrintJson({{"levels", options.levels},
                      {"stride", options.stride},
                      {"rho", options.rho},
                      {"xi", options.xi},
                      {"d", options.d},
                      {"pairs", options.pairs},
                      {"kappa", *heavy.kappa},
                      {"seed", options.seed},
                      {"two_tokens", {{"gaussian", ToJson(two)}, {"heavy", ToJson(two_heavy)}}},
                      {"one_token", {{"gaussian", ToJson(one)}, {"heavy", ToJson(one_heavy)}}},
                      {"pyramid", ToJson(pyramid)}});
  }
  std::printf(
      "target of %s, rho %g, stride %lld, correlation length %g s^l, d = %lld, %lld "
      "pairs\n",
      Counted(options.levels, "level").c_str(), options.rho, static_cast<long long>(options.stride),
      options.xi, static_cast<long long>(options.d), static_cast<long long>(options.pairs));
  PrintTwoTokens("Gaussian tokens", two);
  PrintTwoTokens(Concat("heavy-tailed tokens, kappa ", *heavy.kappa, ", gamma ", data::Gamma(heavy),
                        ": of independent tokens kurtosis has no part")
                     .c_str(),
                 two_heavy);
  PrintOneToken(one, one_heavy);
  PrintPyramid(pyramid);
  if (!state.out.empty()) std::printf("\npairs, targets and tokens in %s\n", state.out.c_str());
}

}  // namespace

void AddMultiscale(CLI::App& data) {
  auto state = std::make_shared<MultiscaleState>();
  data::MultiscaleOptions& o = state->options;
  CLI::App* app = data.add_subcommand(
      "multiscale", "a synthetic target on several scales, and the error decomposition on it");
  app->add_option("--levels", o.levels, "levels of the target")->capture_default_str();
  app->add_option("--stride", o.stride, "stride s")->capture_default_str();
  app->add_option("--rho", o.rho, "ratio of neighbouring levels' sizes")->capture_default_str();
  app->add_option("--xi", o.xi, "correlation length of level 0, in tokens")->capture_default_str();
  app->add_option("--d-model", o.d, "width d of the tokens")->capture_default_str();
  app->add_option("--pairs", o.pairs, "pairs of tokens")->capture_default_str();
  app->add_option("--kappa", state->kappa,
                  "Mardia's kurtosis of the heavy-tailed tokens (default: twice a Gaussian's)");
  app->add_option("--seed", o.seed, "seed")->capture_default_str();
  app->add_option("--out", state->out,
                  "file for the pairs of Gaussian tokens, or with --kappa of heavy-tailed ones")
      ->type_name("FILE.safetensors");
  app->add_flag("--json", state->json, "one JSON document on stdout");
  app->callback([state] { Run(*state); });
}

}  // namespace hkt::cli
