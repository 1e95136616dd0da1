#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace hkt::data {

struct MinimiseOptions {
  int64_t iterations = 500;          // at most
  double gradient_tolerance = 1e-5;  // ends where no component of the gradient is larger
};

// Minimises a smooth convex function by L-BFGS (Nocedal and Wright, algorithm 7.5) with
// backtracking, from x on. value(x, gradient) fills the gradient. Returns the number of iterations.
int64_t Minimise(
    const std::function<double(const std::vector<double>& x, std::vector<double>& gradient)>& value,
    std::vector<double>& x, const MinimiseOptions& options = {});

}  // namespace hkt::data
