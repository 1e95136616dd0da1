#include "hkt/kernels/downsample_test_util.h"

#include <cmath>

#include "hkt/base/dims.h"
#include "hkt/testing/error_bound.h"

namespace hkt::kernels {
namespace {

using reference::Downsample;
using reference::DownsampleGradients;
using reference::Vector;

constexpr double kUnit = 0x1p-24;  // of float32, the type of all sums

double Sum(double terms) { return (terms + 2) * kUnit; }

// A value, and how far the kernel may be from it.
struct Approximate {
  double value = 0, error = 0;
};

// Of the normal distribution function Phi and of GELU'. gelu-inl.h promises (16 + 1.5 h^2) u of the
// tail, largest at h = 0, where it is 1/2; 1 - tail rounds once more: 9 u. GELU' adds h phi(h) <=
// 0.25 times at most 9 roundings and one of the sum: 13 u.
constexpr double kCdfError = 9 * kUnit, kSlopeError = 13 * kUnit;
// Largest |GELU'| and |GELU''|.
constexpr double kSlope = 1.13, kCurvature = 0.8;

class Propagation {
 public:
  Propagation(const Downsample& p, const Vector& d_out, testing::Element element)
      : p_(p),
        d_out_(d_out),
        unit_(element == testing::Element::kFloat32
                  ? 0  // counted as the sum's last
                  : testing::UnitRoundoff(testing::SignificandOf(element))),
        smallest_(testing::DenormalRounding(element)),
        Tl_(CeilDiv(p.T, p.stride)) {}

  DownsampleBounds Run() {
    const double rows = static_cast<double>(p_.B * Tl_);
    DownsampleGradients &g = bounds_.gradients, zero;
    g.x.assign(p_.B * p_.T * p_.d, 0);
    g.depthwise_weight.assign(p_.d * p_.k, 0);
    g.pointwise_weight.assign(p_.d * p_.d, 0);
    g.depthwise_bias.assign(p_.d, 0);
    if (OnlyDepthwise()) {
      g.pointwise_weight.clear();
    } else {
      for (Vector* v : {&g.pointwise_bias, &g.norm_weight, &g.norm_bias}) v->assign(p_.d, 0);
    }
    of_x_.assign(p_.B * p_.T * p_.d, 0);
    sum_ = Sum(rows);
    for (int64_t b = 0; b < p_.B; ++b) {
      for (int64_t tau = 0; tau < Tl_; ++tau) Row(b, tau);
    }
    for (size_t i = 0; i < of_x_.size(); ++i) g.x[i] += unit_ * of_x_[i] + smallest_;
    return bounds_;
  }

 private:
  bool OnlyDepthwise() const { return p_.pointwise_weight.empty(); }

  template <class Run>
  void ForTaps(int64_t tau, const Run& run) const {
    for (int64_t a = 0; a < p_.k; ++a) {
      const int64_t t = tau * p_.stride - (p_.k - 1) + a;
      if (t >= 0) run(a, t);
    }
  }

  void Row(int64_t b, int64_t tau) {
    const int64_t d = p_.d;
    const double count = static_cast<double>(d), taps = static_cast<double>(p_.k);
    std::vector<Approximate> y(d), z(d), n(d), h(d), d_n(d), d_z(d), d_y(d);

    for (int64_t c = 0; c < d; ++c) {
      double size = std::abs(p_.depthwise_bias[c]);
      y[c].value = p_.depthwise_bias[c];
      ForTaps(tau, [&](int64_t a, int64_t t) {
        const double term = p_.depthwise_weight[c * p_.k + a] * p_.x[(b * p_.T + t) * d + c];
        y[c].value += term;
        size += std::abs(term);
      });
      y[c].error = Sum(taps) * size;
    }
    if (OnlyDepthwise()) {
      for (int64_t c = 0; c < d; ++c) {
        bounds_.out.push_back(y[c].error + unit_ * std::abs(y[c].value) + smallest_);
        d_y[c] = {d_out_[(b * Tl_ + tau) * d + c], 0};
      }
      BackThroughTaps(b, tau, d_y);
      return;
    }
    for (int64_t i = 0; i < d; ++i) {
      double size = std::abs(p_.pointwise_bias[i]);
      z[i].value = p_.pointwise_bias[i];
      for (int64_t j = 0; j < d; ++j) {
        const double w = p_.pointwise_weight[i * d + j];
        z[i].value += w * y[j].value;
        z[i].error += std::abs(w) * y[j].error;
        size += std::abs(w * y[j].value);
      }
      z[i].error += Sum(count) * size;
    }

    // LayerNorm. mean: a mean of errors and a sum of d terms. variance: 2 c times the error of c.
    Approximate mean;
    double size = 0;
    for (const Approximate& v : z) {
      mean.value += v.value / count;
      mean.error += v.error / count;
      size += std::abs(v.value) / count;
    }
    mean.error += Sum(count) * size;
    double variance = 0, variance_error = 0;
    std::vector<Approximate> centred(d);
    for (int64_t i = 0; i < d; ++i) {
      const double value = z[i].value - mean.value;
      const double error = z[i].error + mean.error + kUnit * std::abs(value);
      centred[i] = {value, error};
      variance += value * value / count;
      variance_error += (2 * std::abs(value) + error) * error / count;
    }
    variance_error += Sum(count + 1) * variance;
    const double sigma = std::sqrt(variance + p_.eps);
    // Of the root of v half the relative error of v; a smaller v weighs more.
    const double below = std::max(variance + p_.eps - variance_error, p_.eps / 2);
    const double of_sigma = variance_error / (sigma * std::sqrt(below)) + 3 * kUnit;
    for (int64_t i = 0; i < d; ++i) {
      n[i].value = centred[i].value / sigma;
      n[i].error = (centred[i].error / sigma) * (1 + of_sigma) +
                   std::abs(n[i].value) * (of_sigma + 2 * kUnit);
      h[i].value = n[i].value * p_.norm_weight[i] + p_.norm_bias[i];
      h[i].error =
          std::abs(p_.norm_weight[i]) * n[i].error +
          2 * kUnit * (std::abs(n[i].value * p_.norm_weight[i]) + std::abs(p_.norm_bias[i]));
      const double out = reference::Gelu(h[i].value);
      bounds_.out.push_back(kSlope * h[i].error + kCdfError * std::abs(h[i].value) +
                            (kUnit + unit_) * std::abs(out) + smallest_);
    }

    // Backward.
    DownsampleGradients& g = bounds_.gradients;
    Approximate m1, m2;
    double size1 = 0, size2 = 0;
    for (int64_t i = 0; i < d; ++i) {
      const double d_out = d_out_[(b * Tl_ + tau) * d + i];
      const double slope = reference::GeluDerivative(h[i].value);
      const double slope_error = kCurvature * h[i].error + kSlopeError;
      const Approximate d_h = {d_out * slope,
                               std::abs(d_out) * slope_error + kUnit * std::abs(d_out * slope)};
      d_n[i] = {d_h.value * p_.norm_weight[i],
                std::abs(p_.norm_weight[i]) * (d_h.error + kUnit * std::abs(d_h.value))};
      AddProduct(d_h, n[i], g.norm_weight[i]);
      g.norm_bias[i] += d_h.error + sum_ * std::abs(d_h.value);
      m1.value += d_n[i].value / count;
      m1.error += d_n[i].error / count;
      size1 += std::abs(d_n[i].value) / count;
      m2.value += d_n[i].value * n[i].value / count;
      m2.error += ErrorOfProduct(d_n[i], n[i]) / count;
      size2 += std::abs(d_n[i].value * n[i].value) / count;
    }
    m1.error += Sum(count) * size1;
    m2.error += Sum(count) * size2;
    for (int64_t i = 0; i < d; ++i) {
      const double inner = d_n[i].value - m1.value - n[i].value * m2.value;
      const double inner_size =
          std::abs(d_n[i].value) + std::abs(m1.value) + std::abs(n[i].value * m2.value);
      const double inner_error =
          d_n[i].error + m1.error + ErrorOfProduct(n[i], m2) + 4 * kUnit * inner_size;
      d_z[i] = {inner / sigma, (inner_error / sigma) * (1 + of_sigma) +
                                   std::abs(inner / sigma) * (of_sigma + 2 * kUnit)};
      g.pointwise_bias[i] += d_z[i].error + sum_ * std::abs(d_z[i].value);
      for (int64_t j = 0; j < d; ++j) AddProduct(d_z[i], y[j], g.pointwise_weight[i * d + j]);
    }
    for (int64_t j = 0; j < d; ++j) {
      for (int64_t i = 0; i < d; ++i) {
        const double w = p_.pointwise_weight[i * d + j];
        d_y[j].value += w * d_z[i].value;
        d_y[j].error += std::abs(w) * (d_z[i].error + Sum(count) * std::abs(d_z[i].value));
      }
    }
    BackThroughTaps(b, tau, d_y);
  }

  void BackThroughTaps(int64_t b, int64_t tau, const std::vector<Approximate>& d_y) {
    DownsampleGradients& g = bounds_.gradients;
    const int64_t d = p_.d;
    for (int64_t j = 0; j < d; ++j) {
      g.depthwise_bias[j] += d_y[j].error + sum_ * std::abs(d_y[j].value);
      ForTaps(tau, [&](int64_t a, int64_t t) {
        const size_t at = (b * p_.T + t) * d + j;
        const double w = std::abs(p_.depthwise_weight[j * p_.k + a]);
        AddProduct(d_y[j], {p_.x[at], 0}, g.depthwise_weight[j * p_.k + a]);
        g.x[at] += w * (d_y[j].error + Sum(static_cast<double>(p_.k)) * std::abs(d_y[j].value));
        of_x_[at] += w * std::abs(d_y[j].value);
      });
    }
  }

  static double ErrorOfProduct(const Approximate& a, const Approximate& b) {
    return std::abs(a.value) * b.error + a.error * (std::abs(b.value) + b.error);
  }

  // One term of a sum over all rows.
  void AddProduct(const Approximate& a, const Approximate& b, double& bound) const {
    bound += ErrorOfProduct(a, b) + sum_ * std::abs(a.value * b.value);
  }

  const Downsample& p_;
  const Vector& d_out_;
  double unit_, smallest_;  // of what is stored
  int64_t Tl_;
  double sum_ = 0;  // of a sum over all rows
  Vector of_x_;     // largest |d_x|
  DownsampleBounds bounds_;
};

}  // namespace

DownsampleBounds ErrorBounds(const Downsample& params, const Vector& d_out,
                             testing::Element element) {
  return Propagation(params, d_out, element).Run();
}

}  // namespace hkt::kernels
