#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

// A synthetic target on several scales, made of level terms that are known (docs/theory.md, 3.6):
// on it the terms of the error decomposition have closed forms. Level l is a stationary
// autoregressive field of correlation length xi s^l in R^d with covariance I; tokens i and j are
// independent, each somewhere in a cell; M_l is a random form of Frobenius norm 1.
//   St_l = z_i^T M_l z_j at the tokens themselves (undecimated),
//   S_l  = z_c(i)^T M_l z_c(j) at the first tokens of their cells of s^l (decimated),
//   S*   = sum_l rho^l St_l.

namespace hkt::data {

struct MultiscaleOptions {
  int64_t levels = 8;  // of the target, 1 … 20
  int64_t stride = 2;  // s >= 2
  double rho = 0.6;    // 0 < rho < 1
  double xi = 2;       // correlation length of level 0 in tokens, > 0
  int64_t d = 4;
  int64_t pairs = 100000;
  // Mardia's kurtosis of the field's draws, at least d(d+2), which is Gaussian and the default;
  // above it they are Gaussian times an independent scale of two values.
  std::optional<double> kappa = std::nullopt;
  // i = j: one token, symmetric forms without trace, nothing decimated; kurtosis then matters.
  bool same_token = false;
  bool keep_tokens = false;
  uint64_t seed = 1;
};

// Throws UsageError that names the option, what it is and what it may be.
void CheckOptions(const MultiscaleOptions& options);

// kappa / (d(d+2)) - 1.
double Gamma(const MultiscaleOptions& options);

struct MultiscalePairs {
  MultiscaleOptions options = {};
  std::vector<double> forms = {};         // [L, d, d], M_l
  std::vector<double> phibar = {};        // [L], mean autocorrelation over the lags 0 … s^l - 1
  std::vector<double> coefficients = {};  // [L], rho^l
  std::vector<int64_t> i = {}, j = {};    // [n], places in 0 … s^(L-1) - 1
  std::vector<double> full = {}, decimated = {};  // [n, L], St_l and S_l
  std::vector<double> target = {};                // [n], S*
  // With keep_tokens: [n, L, d] at i and j, and at the first tokens of their cells.
  std::vector<double> token_i = {}, token_j = {}, first_i = {}, first_j = {};
};

// A pure function of its options, up to the last bits of the C library's logarithm and cosine.
MultiscalePairs MakeMultiscale(const MultiscaleOptions& options);

// Everything above under its name, as safetensors, options in the metadata. Throws Error when
// writing fails.
void WriteMultiscale(const std::filesystem::path& path, const MultiscalePairs& pairs);

}  // namespace hkt::data
