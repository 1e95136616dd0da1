// The synthetic target: moments of its fields and tokens, its file, wrong options.

#include "hkt/data/multiscale.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <string>

#include "hkt/base/error.h"
#include "hkt/io/safetensors.h"

namespace hkt::data {
namespace {

using ::testing::HasSubstr;

// Mean within 5 standard errors.
template <class F>
void ExpectMean(int64_t n, const F& sample, double want) {
  double sum = 0, squares = 0;
  for (int64_t k = 0; k < n; ++k) {
    const double x = sample(static_cast<size_t>(k));
    sum += x;
    squares += x * x;
  }
  const double count = static_cast<double>(n), mean = sum / count;
  const double error = std::sqrt((squares / count - mean * mean) / count);
  EXPECT_GT(error, 0);
  EXPECT_LE(std::abs(mean - want), 5 * error) << mean << " +- " << error << ", expected " << want;
}

double SquareOf(const std::vector<double>& tokens, size_t row, size_t d) {
  double square = 0;
  for (size_t a = 0; a < d; ++a) square += tokens[row * d + a] * tokens[row * d + a];
  return square;
}

TEST(Multiscale, TokensHaveTheirMoments) {
  MultiscaleOptions options{.levels = 3, .pairs = 50000, .keep_tokens = true};
  for (const bool heavy : {false, true}) {
    if (heavy) options.kappa = 60;  // gamma = 1.5 at d = 4
    const MultiscalePairs pairs = MakeMultiscale(options);
    for (size_t l = 0; l < 3; ++l) {
      const auto row = [l](size_t k) { return k * 3 + l; };
      ExpectMean(
          options.pairs, [&](size_t k) { return SquareOf(pairs.token_i, row(k), 4); }, 4);
      // Mardia's kurtosis: the covariance is I.
      ExpectMean(
          options.pairs, [&](size_t k) { return std::pow(SquareOf(pairs.first_j, row(k), 4), 2); },
          heavy ? 60 : 24);
      // Autocorrelation with the first token of the cell, averaged over places.
      ExpectMean(
          options.pairs,
          [&](size_t k) { return pairs.token_j[row(k) * 4] * pairs.first_j[row(k) * 4]; },
          pairs.phibar[l]);
    }
    EXPECT_EQ(pairs.phibar[0], 1);
    EXPECT_NEAR(pairs.phibar[1], (1 + std::exp(-0.25)) / 2, 1e-15);
  }
}

TEST(Multiscale, TargetsAreTheirLevels) {
  const MultiscalePairs pairs =
      MakeMultiscale({.levels = 4, .rho = 0.5, .d = 3, .pairs = 100, .keep_tokens = true});
  EXPECT_EQ(pairs.target.size(), 100u);
  for (size_t k = 0; k < 100; ++k) {
    double target = 0;
    for (size_t l = 0; l < 4; ++l) {
      double score = 0;
      for (size_t a = 0; a < 3; ++a) {
        for (size_t b = 0; b < 3; ++b) {
          score += pairs.token_i[(k * 4 + l) * 3 + a] * pairs.forms[(l * 3 + a) * 3 + b] *
                   pairs.token_j[(k * 4 + l) * 3 + b];
        }
      }
      EXPECT_NEAR(pairs.full[k * 4 + l], score, 1e-12);
      target += std::pow(0.5, l) * score;
    }
    EXPECT_NEAR(pairs.target[k], target, 1e-12);
    EXPECT_EQ(pairs.full[k * 4], pairs.decimated[k * 4]);  // level 0 is whole
  }
}

TEST(Multiscale, FormsHaveNormOne) {
  const MultiscalePairs pairs = MakeMultiscale({.levels = 2, .pairs = 20, .same_token = true});
  for (size_t l = 0; l < 2; ++l) {
    double squares = 0, trace = 0;
    for (size_t a = 0; a < 4; ++a) {
      trace += pairs.forms[l * 16 + a * 5];
      for (size_t b = 0; b < 4; ++b) {
        squares += std::pow(pairs.forms[l * 16 + a * 4 + b], 2);
        EXPECT_EQ(pairs.forms[l * 16 + a * 4 + b], pairs.forms[l * 16 + b * 4 + a]);
      }
    }
    EXPECT_NEAR(squares, 1, 1e-14);
    EXPECT_NEAR(trace, 0, 1e-14);
  }
  EXPECT_EQ(pairs.i, pairs.j);
}

TEST(Multiscale, SeedsDecide) {
  MultiscaleOptions options{.levels = 2, .pairs = 30};
  const MultiscalePairs first = MakeMultiscale(options);
  EXPECT_EQ(MakeMultiscale(options).target, first.target);
  options.seed = 2;
  EXPECT_NE(MakeMultiscale(options).target, first.target);
}

TEST(Multiscale, FileHoldsEverything) {
  const auto path = std::filesystem::temp_directory_path() / "hkt-multiscale-test.safetensors";
  const MultiscalePairs pairs = MakeMultiscale({.levels = 3, .pairs = 40, .keep_tokens = true});
  WriteMultiscale(path, pairs);
  const io::SafetensorsFile file(path);
  std::filesystem::remove(path);
  EXPECT_EQ(file.tensors().size(), 12u);
  const io::TensorView& full = file.at("full");
  EXPECT_EQ(full.shape, (std::vector<int64_t>{40, 3}));
  EXPECT_EQ(std::memcmp(full.data.data(), pairs.full.data(), full.data.size()), 0);
  EXPECT_EQ(file.at("token_i").shape, (std::vector<int64_t>{40, 3, 4}));
  EXPECT_EQ(file.at("i").dtype, io::Dtype::kI64);
  EXPECT_EQ(file.Meta("rho"), "0.6");
}

TEST(Multiscale, WrongOptionsAreNamed) {
  const auto message = [](const MultiscaleOptions& options) -> std::string {
    try {
      CheckOptions(options);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(message({.levels = 0}), HasSubstr("levels is 0, must be 1 to 20"));
  EXPECT_THAT(message({.stride = 1}), HasSubstr("stride is 1"));
  EXPECT_THAT(message({.rho = 1}), HasSubstr("rho is 1"));
  EXPECT_THAT(message({.xi = 0}), HasSubstr("xi is 0"));
  EXPECT_THAT(message({.d = 0}), HasSubstr("d is 0"));
  EXPECT_THAT(message({.pairs = 5}), HasSubstr("pairs is 5, must be 80 to"));
  EXPECT_THAT(message({.kappa = 23}),
              HasSubstr("kappa is 23, must be at least that of a Gaussian, d(d+2) = 24"));
  // Places are drawn below stride^(levels - 1), and a cell's lags are held in memory.
  EXPECT_EQ(message({.levels = 9, .stride = 8}), "no error");  // 2^24
  EXPECT_THAT(message({.levels = 10, .stride = 8}),
              HasSubstr("levels is 10 with stride 8: stride^(levels - 1) is above 2^24"));
  EXPECT_EQ(message({.levels = 20, .stride = 2}), "no error");
  EXPECT_THAT(message({.levels = 20, .stride = 3}), HasSubstr("lower one of them"));
  EXPECT_EQ(message({}), "no error");
}

}  // namespace
}  // namespace hkt::data
