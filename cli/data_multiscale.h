#pragma once

#include <CLI/CLI.hpp>

namespace hkt::cli {

// hkt data multiscale
void AddMultiscale(CLI::App& data);

}  // namespace hkt::cli
