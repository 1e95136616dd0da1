#include "hkt/data/multiscale.h"

#include <array>
#include <cmath>
#include <span>
#include <string>

#include "hkt/base/error.h"
#include "hkt/base/random.h"
#include "hkt/io/safetensors.h"

namespace hkt::data {
namespace {

// Draws of covariance I: sqrt(v) times a Gaussian, E v = 1, E v^2 = 1 + gamma. v is large with
// probability 0.4/(1 + gamma), which keeps its small value above 0 for every gamma.
class Draws {
 public:
  Draws(Random& random, double gamma) : random_(random), share_(0.4 / (1 + gamma)) {
    large_ = std::sqrt(1 + std::sqrt(gamma * (1 - share_) / share_));
    small_ = std::sqrt(1 - std::sqrt(gamma * share_ / (1 - share_)));
  }
  void Fill(std::span<double> x) {
    const double scale = random_.Uniform() < share_ ? large_ : small_;
    for (double& value : x) value = scale * random_.Normal();
  }

 private:
  Random& random_;
  double share_, large_, small_;
};

double Form(std::span<const double> x, const double* M, std::span<const double> y) {
  double sum = 0;
  for (size_t a = 0; a < x.size(); ++a) {
    double row = 0;
    for (size_t b = 0; b < y.size(); ++b) row += M[a * y.size() + b] * y[b];
    sum += x[a] * row;
  }
  return sum;
}

// [d, d] of Frobenius norm 1; symmetric and without trace where asked for.
std::vector<double> RandomForm(Random& random, size_t d, bool traceless) {
  std::vector<double> M(d * d);
  for (double& value : M) value = random.Normal();
  if (traceless) {
    double trace = 0;
    for (size_t a = 0; a < d; ++a) {
      for (size_t b = 0; b < a; ++b)
        M[a * d + b] = M[b * d + a] = (M[a * d + b] + M[b * d + a]) / 2;
      trace += M[a * d + a];
    }
    for (size_t a = 0; a < d; ++a) M[a * d + a] -= trace / static_cast<double>(d);
  }
  double squares = 0;
  for (double value : M) squares += value * value;
  for (double& value : M) value /= std::sqrt(squares);
  return M;
}

}  // namespace

void CheckOptions(const MultiscaleOptions& o) {
  const auto between = [](const char* name, int64_t value, int64_t least, int64_t most) {
    CheckUsage(value >= least && value <= most, name, " is ", value, ", must be ", least, " to ",
               most);
  };
  between("levels", o.levels, 1, 20);
  between("stride", o.stride, 2, 8);
  double places = 1;
  for (int64_t l = 1; l < o.levels; ++l) places *= static_cast<double>(o.stride);
  CheckUsage(places <= 1 << 24, "levels is ", o.levels, " with stride ", o.stride,
             ": stride^(levels - 1) is above 2^24; lower one of them");
  between("d", o.d, o.same_token ? 2 : 1, 64);
  between("pairs", o.pairs, 10 * o.levels, 10'000'000);
  CheckUsage(o.rho > 0 && o.rho < 1, "rho is ", o.rho, ", must be above 0 and below 1");
  CheckUsage(o.xi > 0 && std::isfinite(o.xi), "xi is ", o.xi, ", must be above 0 and finite");
  const auto gaussian = static_cast<double>(o.d * (o.d + 2));
  CheckUsage(!o.kappa || (*o.kappa >= gaussian && *o.kappa <= 100 * gaussian), "kappa is ",
             o.kappa.value_or(0), ", must be at least that of a Gaussian, d(d+2) = ", gaussian,
             " at d = ", o.d, ", and at most 100 times that");
}

double Gamma(const MultiscaleOptions& o) {
  const auto gaussian = static_cast<double>(o.d * (o.d + 2));
  return o.kappa ? *o.kappa / gaussian - 1 : 0;
}

MultiscalePairs MakeMultiscale(const MultiscaleOptions& options) {
  CheckOptions(options);
  const auto L = static_cast<size_t>(options.levels), d = static_cast<size_t>(options.d);
  const auto n = static_cast<size_t>(options.pairs);
  Random random({options.seed, 0x6d756c7469u});
  Draws draws(random, Gamma(options));
  MultiscalePairs pairs{.options = options};
  int64_t places = 1;
  for (size_t l = 1; l < L; ++l) places *= options.stride;
  for (size_t k = 0; k < n; ++k) {
    pairs.i.push_back(random.Between(0, places - 1));
    pairs.j.push_back(options.same_token ? pairs.i.back() : random.Between(0, places - 1));
  }
  pairs.full.resize(n * L);
  pairs.decimated.resize(n * L);
  pairs.target.assign(n, 0.0);
  for (auto* tokens : {&pairs.token_i, &pairs.token_j, &pairs.first_i, &pairs.first_j})
    tokens->resize(options.keep_tokens ? n * L * d : 0);

  std::array<std::vector<double>, 4>
      buffers;  // of one pair: at i and j, at their cells' first tokens
  for (auto& buffer : buffers) buffer.resize(d);
  std::vector<double> fresh(d);
  const auto kept = [&](std::vector<double>& tokens, size_t buffer, size_t k, size_t l) {
    if (!options.keep_tokens) return std::span<double>(buffers[buffer]);
    return std::span<double>(tokens).subspan((k * L + l) * d, d);
  };
  int64_t step = 1;
  for (size_t l = 0; l < L; ++l, step *= options.stride) {
    const double a = std::pow(options.rho, static_cast<double>(l));
    const std::vector<double> M = RandomForm(random, d, options.same_token);
    const double phi = std::exp(-1 / (options.xi * static_cast<double>(step)));
    std::vector<double> power(static_cast<size_t>(step));  // autocorrelation at each lag of a cell
    double sum = 0;
    for (size_t lag = 0; lag < power.size(); ++lag)
      sum += power[lag] = std::pow(phi, static_cast<double>(lag));
    pairs.forms.insert(pairs.forms.end(), M.begin(), M.end());
    pairs.phibar.push_back(options.same_token ? 1 : sum / static_cast<double>(step));
    pairs.coefficients.push_back(a);
    const auto token = [&](int64_t place, std::span<double> first, std::span<double> z) {
      draws.Fill(first);
      draws.Fill(fresh);
      const double phase = options.same_token ? 1 : power[static_cast<size_t>(place % step)];
      const double rest = std::sqrt(1 - phase * phase);
      for (size_t k = 0; k < d; ++k) z[k] = phase * first[k] + rest * fresh[k];
    };
    for (size_t k = 0; k < n; ++k) {
      const auto zi = kept(pairs.token_i, 0, k, l), ci = kept(pairs.first_i, 2, k, l);
      const auto zj = kept(pairs.token_j, 1, k, l), cj = kept(pairs.first_j, 3, k, l);
      token(pairs.i[k], ci, zi);
      if (options.same_token) {
        std::copy(zi.begin(), zi.end(), zj.begin());
        std::copy(ci.begin(), ci.end(), cj.begin());
      } else {
        token(pairs.j[k], cj, zj);
      }
      pairs.full[k * L + l] = Form(zi, M.data(), zj);
      pairs.decimated[k * L + l] = Form(ci, M.data(), cj);
      pairs.target[k] += a * pairs.full[k * L + l];
    }
  }
  return pairs;
}

void WriteMultiscale(const std::filesystem::path& path, const MultiscalePairs& pairs) {
  const MultiscaleOptions& o = pairs.options;
  io::TensorViews views;
  const auto add = [&]<class T>(const char* name, const std::vector<T>& values,
                                std::vector<int64_t> shape) {
    if (values.empty()) return;
    views[name] = {std::is_same_v<T, double> ? io::Dtype::kF64 : io::Dtype::kI64, std::move(shape),
                   std::as_bytes(std::span(values))};
  };
  add("forms", pairs.forms, {o.levels, o.d, o.d});
  add("phibar", pairs.phibar, {o.levels});
  add("coefficients", pairs.coefficients, {o.levels});
  add("i", pairs.i, {o.pairs});
  add("j", pairs.j, {o.pairs});
  add("full", pairs.full, {o.pairs, o.levels});
  add("decimated", pairs.decimated, {o.pairs, o.levels});
  add("target", pairs.target, {o.pairs});
  add("token_i", pairs.token_i, {o.pairs, o.levels, o.d});
  add("token_j", pairs.token_j, {o.pairs, o.levels, o.d});
  add("first_i", pairs.first_i, {o.pairs, o.levels, o.d});
  add("first_j", pairs.first_j, {o.pairs, o.levels, o.d});
  io::WriteSafetensors(path, views,
                       {{"levels", std::to_string(o.levels)},
                        {"stride", std::to_string(o.stride)},
                        {"rho", Concat(o.rho)},
                        {"xi", Concat(o.xi)},
                        {"gamma", Concat(Gamma(o))},
                        {"same_token", o.same_token ? "true" : "false"},
                        {"seed", std::to_string(o.seed)}});
}

}  // namespace hkt::data
