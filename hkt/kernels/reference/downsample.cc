#include "hkt/kernels/reference/downsample.h"

#include <cmath>
#include <numbers>

#include "hkt/base/dims.h"

namespace hkt::kernels::reference {
namespace {

int64_t Tl(const Downsample& p) { return CeilDiv(p.T, p.stride); }

// Rows of all sequences, one after the other.
int64_t Rows(const Downsample& p) { return p.B * Tl(p); }

// Calls run(row of the output, row of x, tap a) for every tap that lies at or after the first
// token: output tau reads tokens tau s - (k-1) … tau s.
template <class Run>
void ForEachTap(const Downsample& p, const Run& run) {
  for (int64_t b = 0; b < p.B; ++b) {
    for (int64_t tau = 0; tau < Tl(p); ++tau) {
      for (int64_t a = 0; a < p.k; ++a) {
        const int64_t t = tau * p.stride - (p.k - 1) + a;
        if (t >= 0) run(b * Tl(p) + tau, b * p.T + t, a);
      }
    }
  }
}

// Pass 1, each channel by itself:  y[tau, c] = b[c] + sum_a w[c, a] x[tau s - (k-1) + a, c].
Vector Depthwise(const Downsample& p) {
  Vector y(Rows(p) * p.d);
  for (int64_t r = 0; r < Rows(p); ++r) {
    for (int64_t c = 0; c < p.d; ++c) y[r * p.d + c] = p.depthwise_bias[c];
  }
  ForEachTap(p, [&](int64_t r, int64_t t, int64_t a) {
    for (int64_t c = 0; c < p.d; ++c)
      y[r * p.d + c] += p.depthwise_weight[c * p.k + a] * p.x[t * p.d + c];
  });
  return y;
}

// y[tau, c] = b[c] + sum_a w[c, a] x[t, c]:
//   d_b[c] = sum d_y[., c]    d_w[c, a] = sum d_y[tau, c] x[t, c]    d_x[t, c] = sum w[c, a]
//   d_y[tau, c]
void DepthwiseBackward(const Downsample& p, const Vector& d_y, DownsampleGradients& gradients) {
  gradients.x.assign(p.B * p.T * p.d, 0);
  gradients.depthwise_weight.assign(p.d * p.k, 0);
  gradients.depthwise_bias.assign(p.d, 0);
  for (int64_t r = 0; r < Rows(p); ++r) {
    for (int64_t c = 0; c < p.d; ++c) gradients.depthwise_bias[c] += d_y[r * p.d + c];
  }
  ForEachTap(p, [&](int64_t r, int64_t t, int64_t a) {
    for (int64_t c = 0; c < p.d; ++c) {
      gradients.depthwise_weight[c * p.k + a] += d_y[r * p.d + c] * p.x[t * p.d + c];
      gradients.x[t * p.d + c] += p.depthwise_weight[c * p.k + a] * d_y[r * p.d + c];
    }
  });
}

// Pass 2, each position by itself:  z = W y + b.
Vector Pointwise(const Downsample& p, const Vector& y) {
  Vector z(Rows(p) * p.d);
  for (int64_t r = 0; r < Rows(p); ++r) {
    for (int64_t i = 0; i < p.d; ++i) {
      double sum = p.pointwise_bias[i];
      for (int64_t j = 0; j < p.d; ++j) sum += p.pointwise_weight[i * p.d + j] * y[r * p.d + j];
      z[r * p.d + i] = sum;
    }
  }
  return z;
}

// z = W y + b:  d_y = W^T d_z    d_W = sum d_z y^T    d_b = sum d_z
Vector PointwiseBackward(const Downsample& p, const Vector& y, const Vector& d_z,
                         DownsampleGradients& gradients) {
  Vector d_y(Rows(p) * p.d);
  gradients.pointwise_weight.assign(p.d * p.d, 0);
  gradients.pointwise_bias.assign(p.d, 0);
  for (int64_t r = 0; r < Rows(p); ++r) {
    for (int64_t i = 0; i < p.d; ++i) {
      const double g = d_z[r * p.d + i];
      gradients.pointwise_bias[i] += g;
      for (int64_t j = 0; j < p.d; ++j) {
        gradients.pointwise_weight[i * p.d + j] += g * y[r * p.d + j];
        d_y[r * p.d + j] += p.pointwise_weight[i * p.d + j] * g;
      }
    }
  }
  return d_y;
}

// Pass 3, LayerNorm:  n = (z - mean z) / sigma, sigma = sqrt(mean (z - mean z)^2 + eps);  h = n
// weight + bias.
struct Norm {
  Vector n, sigma, h;
};

Norm LayerNorm(const Downsample& p, const Vector& z) {
  Norm norm{Vector(Rows(p) * p.d), Vector(Rows(p)), Vector(Rows(p) * p.d)};
  const double count = static_cast<double>(p.d);
  for (int64_t r = 0; r < Rows(p); ++r) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < p.d; ++c) mean += z[r * p.d + c] / count;
    for (int64_t c = 0; c < p.d; ++c) {
      const double centred = z[r * p.d + c] - mean;
      variance += centred * centred / count;
    }
    norm.sigma[r] = std::sqrt(variance + p.eps);
    for (int64_t c = 0; c < p.d; ++c) {
      const double n = (z[r * p.d + c] - mean) / norm.sigma[r];
      norm.n[r * p.d + c] = n;
      norm.h[r * p.d + c] = n * p.norm_weight[c] + p.norm_bias[c];
    }
  }
  return norm;
}

// h = n weight + bias:   d_weight = sum d_h n    d_bias = sum d_h    d_n = d_h weight
// n = (z - mean z) / sigma, where mean and sigma depend on every z:
//   d_z = (d_n - mean d_n - n mean(d_n n)) / sigma
Vector LayerNormBackward(const Downsample& p, const Norm& norm, const Vector& d_h,
                         DownsampleGradients& gradients) {
  Vector d_z(Rows(p) * p.d);
  gradients.norm_weight.assign(p.d, 0);
  gradients.norm_bias.assign(p.d, 0);
  const double count = static_cast<double>(p.d);
  for (int64_t r = 0; r < Rows(p); ++r) {
    double mean = 0, product = 0;
    for (int64_t c = 0; c < p.d; ++c) {
      const double g = d_h[r * p.d + c], n = norm.n[r * p.d + c];
      gradients.norm_weight[c] += g * n;
      gradients.norm_bias[c] += g;
      mean += g * p.norm_weight[c] / count;
      product += g * p.norm_weight[c] * n / count;
    }
    for (int64_t c = 0; c < p.d; ++c) {
      const double d_n = d_h[r * p.d + c] * p.norm_weight[c];
      d_z[r * p.d + c] = (d_n - mean - norm.n[r * p.d + c] * product) / norm.sigma[r];
    }
  }
  return d_z;
}

// Phi(h); erfc keeps the digits of the lower tail.
double Phi(double h) { return std::erfc(-h / std::numbers::sqrt2) / 2; }

}  // namespace

// Pass 4:  out = h Phi(h);   d_h = d_out (Phi(h) + h phi(h)).
double Gelu(double h) { return h * Phi(h); }

double GeluDerivative(double h) {
  const double phi =
      std::exp(-h * h / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;  // 1 / sqrt(2 pi)
  return Phi(h) + h * phi;
}

Vector DownsampleForward(const Downsample& params) {
  if (params.pointwise_weight.empty()) return Depthwise(params);
  Vector out = LayerNorm(params, Pointwise(params, Depthwise(params))).h;
  for (double& h : out) h = Gelu(h);
  return out;
}

DownsampleGradients DownsampleBackward(const Downsample& params, const Vector& d_out) {
  DownsampleGradients gradients;
  if (params.pointwise_weight.empty()) {
    DepthwiseBackward(params, d_out, gradients);
    return gradients;
  }
  const Vector y = Depthwise(params);
  const Norm norm = LayerNorm(params, Pointwise(params, y));
  Vector d_h = d_out;
  for (size_t i = 0; i < d_h.size(); ++i) d_h[i] *= GeluDerivative(norm.h[i]);

  const Vector d_z = LayerNormBackward(params, norm, d_h, gradients);
  const Vector d_y = PointwiseBackward(params, y, d_z, gradients);
  DepthwiseBackward(params, d_y, gradients);
  return gradients;
}

}  // namespace hkt::kernels::reference
